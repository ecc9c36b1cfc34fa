package budget

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"clove.run/clove/agent"
)

// The rows of the rule, for a run below one account: what its own account, the account above and
// the sums of the day count of a claim.
func TestAClaim(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		own, above       []string
		before, reserved int64
		claimed          int64
		wantOwn          int64
		wantAbove        int64 // -1: refused
		wantDay          int64
		stops            bool
	}{
		"it fits":                                  {[]string{"n=10"}, []string{"n=100"}, 0, 0, 7, 7, 7, 7, false},
		"more than the own line":                   {[]string{"n=10"}, []string{"n=100"}, 4, 0, MaxAmount, MaxAmount + 4, 10, 6, false},
		"nothing is left of the own line":          {[]string{"n=10"}, []string{"n=100"}, 10, 0, 5, 15, 10, 0, false},
		"more than the account above":              {[]string{"n=500"}, []string{"n=100"}, 90, 0, 30, 120, 100, 30, true},
		"the account above is spent":               {[]string{"n=500"}, []string{"n=100"}, 100, 0, 1, 100, -1, 0, true},
		"no own line":                              {nil, []string{"n=100"}, 0, 0, 100, 100, 100, 100, false},
		"no own line, and more than is left":       {nil, []string{"n=100"}, 99, 0, 2, 99, -1, 0, true},
		"no own line, and everything":              {nil, []string{"n=100"}, 0, 0, MaxAmount, 0, -1, 0, true},
		"what was reserved":                        {nil, []string{"n=100"}, 0, 100, 100, 100, 100, 100, false},
		"more than was reserved, and it is left":   {nil, []string{"n=100"}, 0, 50, 60, 60, 60, 60, false},
		"more than was reserved, and nothing left": {nil, []string{"n=100"}, 50, 50, 60, 50, -1, 0, true},
		"more than was reserved of the own line":   {[]string{"n=50"}, []string{"n=100"}, 0, 50, 60, 60, 50, 50, false},
	} {
		c := chainOf(t, row.own, row.above)
		_, err := c.Charge(Amounts{"n": row.before}, noon)
		must(t, err)
		r, err := reserve(c, Amounts{"n": row.reserved})
		must(t, err)
		before := textOf(t, c[1:])
		e, err := c.Claim(r, Amounts{"n": row.claimed}, noon)
		var over *Exceeded
		stopped := c.Short(noon) != nil
		if errors.As(err, &over) {
			stopped = c.Stop(over)
			row.wantAbove++
			if textOf(t, c[1:]) != before {
				t.Errorf("%s: refused, and the account has changed", name)
			}
		} else if must(t, err); c[1].Lines["n"].Used != row.wantAbove || c[1].Lines["n"].Reserved != 0 {
			t.Errorf("%s: above %+v", name, c[1].Lines["n"])
		}
		if (over != nil) != (row.wantAbove == 0 && row.wantDay == 0) || c[0].Lines["n"].Used != row.wantOwn || e.Used["n"] != row.wantDay || stopped != row.stops {
			t.Errorf("%s: %v, own %+v, %+v, stops %t", name, err, c[0].Lines["n"], e, stopped)
		}
	}
}

// The claims of others on an account stop no run, whatever the run then wants. The control is the
// same of a dimension that clove counts, and the run that has used it all itself.
func TestAClaimStopsNoOtherRun(t *testing.T) {
	t.Parallel()
	for d, want := range map[Dimension]bool{"n": false, ModelCalls: true} {
		c := chainOf(t, nil, []string{string(d) + "=10"})
		other := Chain{{Key: RunKey(7, "00000000000000bb")}, c[1]}
		_, err := other.Charge(Amounts{d: 9}, noon)
		must(t, err)
		r := Reservation{ID: "r", Run: runID, Amounts: Amounts{d: 2}}
		var over *Exceeded
		if err := c.Reserve(&r, noon); !errors.As(err, &over) || c.Stop(over) != want || (c.Short(noon) != nil) != want {
			t.Errorf("%s: %v, %+v", d, err, c[0].Short)
		}
		if err := other.Reserve(&r, noon); !errors.As(err, &over) || !other.Stop(over) {
			t.Errorf("%s: control: %v", d, err)
		}
	}
}

// forest is a tree of accounts with its runs, and what agents did in it.
type forest struct {
	above []*Account
	runs  []Chain
	open  []Reservation
}

// claimedHere is the dimension that the agents of the forest charge.
const claimedHere = Dimension("n")

func newForest(t *rapid.T) *forest {
	f := &forest{above: []*Account{{Key: OwnerKey(7)}, {Key: NamespaceKey(7, "a")}, {Key: NamespaceKey(7, "b")}, {Key: NameKey(7, "w")}}}
	limit := func(a *Account, most int64) {
		if rapid.Bool().Draw(t, "limited") {
			a.AtEnd = rapid.SampledFrom([]AtEnd{End, Pause, Refuse}).Draw(t, "at end")
			_, err := a.Set(Limit{Dimension: claimedHere, Granted: rapid.Int64Range(0, most).Draw(t, "granted")}, 0, noon)
			mustIn(t, err)
		}
	}
	for _, a := range f.above {
		limit(a, 200)
	}
	for i := range 4 {
		run := &Account{Key: RunKey(7, agent.ID(fmt.Sprintf("%016x", i)))}
		limit(run, 60)
		f.runs = append(f.runs, Chain{run, f.above[3], f.above[1+i%2], f.above[0]})
	}
	return f
}

func mustIn(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

// claim is a charge or a settlement of an agent, mostly of more than is left.
func (f *forest) claim(t *rapid.T) {
	i := rapid.IntRange(0, len(f.runs)-1).Draw(t, "run")
	amount := rapid.OneOf(rapid.Int64Range(0, 30), rapid.Just(int64(MaxAmount))).Draw(t, "amount")
	var r Reservation
	if mine := f.ofRun(i); len(mine) > 0 && rapid.Bool().Draw(t, "settles") {
		r = f.open[mine[0]]
	}
	f.step(t, i, func(c Chain) error {
		_, err := c.Claim(r, Amounts{claimedHere: amount}, noon)
		if err == nil && r.ID != "" {
			f.open = append(f.open[:f.ofRun(i)[0]:f.ofRun(i)[0]], f.open[f.ofRun(i)[0]+1:]...)
		}
		return err
	}, r, amount)
}

func (f *forest) ofRun(i int) (at []int) {
	for n, r := range f.open {
		if RunKey(7, r.Run) == f.runs[i][0].Key {
			at = append(at, n)
		}
	}
	return at
}

func (f *forest) reserve(t *rapid.T) {
	i := rapid.IntRange(0, len(f.runs)-1).Draw(t, "run")
	r := Reservation{ID: fmt.Sprint("r", len(f.open)), Run: agent.ID(fmt.Sprintf("%016x", i)), Amounts: Amounts{claimedHere: rapid.Int64Range(0, 30).Draw(t, "amount")}}
	f.step(t, i, func(c Chain) error {
		err := c.Reserve(&r, noon)
		if err == nil {
			f.open = append(f.open, r)
		}
		return err
	}, Reservation{}, r.Amounts[claimedHere])
}

// step does what an agent asks for, and compares what it changed with the rule.
func (f *forest) step(t *rapid.T, i int, do func(Chain) error, r Reservation, amount int64) {
	c := f.runs[i]
	if len(c.with(claimedHere)) == 0 {
		return // there is no budget of it
	}
	stops, used, short, before := f.stops(), c.ownUsed(claimedHere), c[0].Short, map[Key]Line{}
	for _, a := range c.with(claimedHere) {
		before[a.Key] = *a.Lines[claimedHere]
	}
	bound := int64(MaxAmount) // of what an account above may count
	if l := before[c[0].Key]; c[0].Lines[claimedHere] != nil && !l.Unlimited {
		bound = max(r.Amounts[claimedHere], l.Granted-l.Used-l.Reserved+r.Amounts[claimedHere])
	}
	err := do(c)
	var over *Exceeded
	if errors.As(err, &over) {
		c.Stop(over)
	} else {
		mustIn(t, err)
	}
	for _, a := range c.with(claimedHere) {
		was, is := before[a.Key], *a.Lines[claimedHere]
		if over != nil && (is.Used != was.Used || is.Reserved != was.Reserved) {
			t.Fatalf("refused, and %s has changed: %+v, %+v", a.Key, was, is)
		}
		if !a.Key.ofRun() && is.Used-was.Used > max(0, bound) {
			t.Fatalf("%s counts %d of a run with %d left", a.Key, is.Used-was.Used, bound)
		}
	}
	now := f.stops()
	delete(stops, c[0].Key)
	delete(now, c[0].Key)
	if !maps.Equal(stops, now) {
		t.Fatalf("run %d stopped others: %v, %v", i, stops, now)
	}
	if s := c[0].Short; s != short && s != nil && s.Account != c[0].Key && Sum(used, amount) <= s.Granted {
		t.Fatalf("run %d is stopped by %+v, and used %d of it", i, s, used)
	}
}

// stops are the runs that an account pauses or ends.
func (f *forest) stops() map[Key]bool {
	all := map[Key]bool{}
	for _, c := range f.runs {
		l := c[0].Lines[claimedHere]
		if c.Short(noon) != nil || l != nil && l.Breached {
			all[c[0].Key] = true
		}
	}
	return all
}

// check holds the accounts above against their limits.
func (f *forest) check(t *rapid.T) {
	for _, a := range f.above {
		if l := a.Lines[claimedHere]; l != nil && (l.Used+l.Reserved > l.Granted || l.Breached || l.Broken(claimedHere) != "") {
			t.Fatalf("%s: %+v", a.Key, l)
		}
	}
}

// Whatever agents claim in a tree of accounts: no account above a run exceeds its limit, none
// counts more of a run than the run's own line had left, a refused call changes nothing, and no
// run is stopped but by what it did itself. The control is the same tree in the end, where one
// charge without the rule exceeds each account.
func TestClaimsInATreeOfAccounts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := newForest(t)
		t.Repeat(map[string]func(*rapid.T){"claim": f.claim, "reserve": f.reserve, "": f.check})
		for _, c := range f.runs {
			if len(c.with(claimedHere)) == 0 {
				continue
			}
			_, err := c.Charge(Amounts{claimedHere: MaxAmount}, noon)
			mustIn(t, err)
			for _, a := range c.with(claimedHere) {
				if l := a.Lines[claimedHere]; l.Used <= l.Granted {
					t.Fatalf("control: %s: %+v", a.Key, l)
				}
			}
		}
	})
}
