package budget

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"clove.run/clove/agent"
)

// ledger is two runs below one user, the second possibly below the first, what is open, and what each account should say.
type ledger struct {
	runs  []Chain
	child bool // the second run is below the first
	owner *Account
	open  []Reservation
	used  []int64 // by run, as a sum of what was settled and charged
	now   time.Time
	made  int
}

// walked is the dimension of the walk; the periodic one has the same amounts.
const walked, periodic = Dimension("n"), Dimension("p")

func newLedger(t *rapid.T) *ledger {
	l := &ledger{owner: &Account{Key: OwnerKey(7)}, now: noon, used: make([]int64, 2)}
	granted := rapid.Int64Range(0, 60)
	set := func(a *Account, d Dimension, p Period) {
		if _, err := a.Set(Limit{Dimension: d, Granted: granted.Draw(t, "granted"), Period: p}, 0, noon); err != nil {
			t.Fatal(err)
		}
	}
	set(l.owner, walked, "")
	set(l.owner, periodic, Hour)
	for i := range l.used {
		run := &Account{Key: RunKey(7, agent.ID(fmt.Sprintf("%016x", i)))}
		if rapid.Bool().Draw(t, "limited") {
			set(run, walked, "")
		}
		l.runs = append(l.runs, Chain{run, l.owner})
	}
	if l.child = rapid.Bool().Draw(t, "child"); l.child {
		l.runs[1] = Chain{l.runs[1][0], l.runs[0][0], l.owner}
	}
	return l
}

func (l *ledger) draw(t *rapid.T) (int, Amounts) {
	amount := rapid.Int64Range(0, 20)
	return rapid.IntRange(0, len(l.runs)-1).Draw(t, "run"), Amounts{walked: amount.Draw(t, "n"), periodic: amount.Draw(t, "p")}
}

// reserve succeeds exactly where every account has room.
func (l *ledger) reserve(t *rapid.T) {
	run, amounts := l.draw(t)
	c := l.runs[run]
	fits := true
	for _, a := range c {
		for d, amount := range amounts {
			if line := a.Lines[d]; line != nil && amount > 0 {
				line.roll(l.now)
				fits = fits && (line.Unlimited || line.Used+line.Reserved+amount <= line.Granted)
			}
		}
	}
	l.made++
	r := Reservation{ID: fmt.Sprint(l.made), Run: agent.ID(fmt.Sprintf("%016x", run)), Amounts: amounts, Begun: rapid.Bool().Draw(t, "begun")}
	if err := c.Reserve(&r, l.now); (err == nil) != fits {
		t.Fatalf("it fits: %v; got %v", fits, err)
	}
	if fits {
		l.open = append(l.open, r)
	}
}

// end takes an open reservation out; false where there is none.
func (l *ledger) end(t *rapid.T) (r Reservation, run int, ok bool) {
	if len(l.open) == 0 {
		return r, 0, false
	}
	i := rapid.IntRange(0, len(l.open)-1).Draw(t, "open")
	r = l.open[i]
	l.open = append(l.open[:i:i], l.open[i+1:]...)
	_, err := fmt.Sscanf(string(r.Run), "%x", &run)
	return r, run, err == nil
}

func (l *ledger) settle(t *rapid.T) {
	r, run, ok := l.end(t)
	if !ok {
		return
	}
	_, actual := l.draw(t)
	if _, err := l.runs[run].Settle(r, actual, l.now); err != nil {
		t.Fatal(err)
	}
	l.used[run] += actual[walked]
}

func (l *ledger) release(t *rapid.T) {
	if r, run, ok := l.end(t); ok {
		if err := l.runs[run].Release(r); err != nil {
			t.Fatal(err)
		}
	}
}

func (l *ledger) recover(t *rapid.T) {
	r, run, ok := l.end(t)
	if !ok {
		return
	}
	if _, err := l.runs[run].Recover(r, l.now); err != nil {
		t.Fatal(err)
	}
	if r.Begun {
		l.used[run] += r.Amounts[walked]
	}
}

// charge reports each warning and each end once in a period.
func (l *ledger) charge(t *rapid.T) {
	run, amounts := l.draw(t)
	if _, err := l.runs[run].Charge(amounts, l.now); err != nil {
		t.Fatal(err)
	}
	l.used[run] += amounts[walked]
	again, err := l.runs[run].Charge(Amounts{walked: 0, periodic: 0}, l.now)
	if err != nil || len(again.Warned)+len(again.Ended) != 0 {
		t.Fatalf("reported twice: %+v, %v", again, err)
	}
}

// clock goes forwards and backwards.
func (l *ledger) clock(t *rapid.T) {
	before := l.owner.Lines[periodic].PeriodStart
	l.now = l.now.Add(time.Duration(rapid.IntRange(-200, 200).Draw(t, "minutes")) * time.Minute)
	l.owner.Lines[periodic].roll(l.now)
	if l.owner.Lines[periodic].PeriodStart.Before(before) {
		t.Fatal("a period went back")
	}
}

// check compares all accounts with what was done.
func (l *ledger) check(t *rapid.T) {
	held := map[Key]Amounts{}
	for _, r := range l.open {
		for key, amounts := range r.Held {
			if held[key] == nil {
				held[key] = Amounts{}
			}
			for d, amount := range amounts {
				held[key][d] += amount
			}
		}
	}
	sum := int64(0)
	for i, c := range l.runs {
		sum += l.used[i]
		want := l.used[i]
		if line := c[0].Lines[walked]; i == 0 && l.child && line != nil {
			want = line.Used // what both used since it counts
			if want < l.used[0] || want > l.used[0]+l.used[1] {
				t.Fatalf("the run above: %+v, %v are used", line, l.used)
			}
		}
		if line := c[0].Lines[walked]; line != nil && line.Used != want || line == nil && l.used[i] != 0 {
			t.Fatalf("run %d: %+v, want %d used", i, line, want)
		}
	}
	if got := l.owner.Lines[walked].Used; got != sum {
		t.Fatalf("the owner has %d used, the runs %d", got, sum)
	}
	for _, a := range []*Account{l.owner, l.runs[0][0], l.runs[1][0]} {
		for d, line := range a.Lines {
			if broken := line.Broken(d); broken != "" || line.Reserved != held[a.Key][d] {
				t.Fatalf("%s %s: %+v: %s; %d are held", a.Key, d, line, broken, held[a.Key][d])
			}
		}
	}
}

// No sequence of calls loses an amount or makes one, whatever the clock does.
func TestAmountsAreKept(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := newLedger(t)
		t.Repeat(map[string]func(*rapid.T){
			"reserve": l.reserve,
			"settle":  l.settle,
			"release": l.release,
			"recover": l.recover,
			"charge":  l.charge,
			"clock":   l.clock,
			"":        l.check,
		})
	})
}
