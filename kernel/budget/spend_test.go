package budget

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"clove.run/clove/agent"
)

const runID = agent.ID("00000000000000aa")

var noon = time.Date(2030, 1, 31, 12, 30, 0, 0, time.UTC)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// chainOf is a run below its owner; limits are the run's, ownLimits the owner's.
func chainOf(t testing.TB, limits, ownLimits []string) Chain {
	t.Helper()
	c := Chain{{Key: RunKey(7, runID)}, {Key: OwnerKey(7)}}
	for i, texts := range [][]string{limits, ownLimits} {
		for _, text := range texts {
			l, err := ParseLimit(text)
			must(t, err)
			_, err = c[i].Set(l, uint32(i), noon)
			must(t, err)
		}
	}
	return c
}

func reserve(c Chain, amounts Amounts) (Reservation, error) {
	r := Reservation{ID: "r", Run: runID, Amounts: amounts}
	err := c.Reserve(&r, noon)
	return r, err
}

func textOf(t testing.TB, c Chain) string {
	t.Helper()
	text, err := json.Marshal(c)
	must(t, err)
	return string(text)
}

// The walk: 800, 150 and 100 of tokens=1000 warn once and end once.
func TestAnAgentCharges(t *testing.T) {
	t.Parallel()
	c := chainOf(t, []string{"tokens=1000"}, nil)
	for _, step := range []struct{ amount, warned, ended int64 }{{800, 1, 0}, {150, 0, 0}, {100, 0, 1}, {5, 0, 0}} {
		e, err := c.Charge(Amounts{Tokens: step.amount}, noon)
		must(t, err)
		if len(e.Warned) != int(step.warned) || len(e.Ended) != int(step.ended) {
			t.Errorf("%d: %+v", step.amount, e)
		}
		if step.ended == 1 && (e.Ended[0].Peak != 1050 || e.Ended[0].Granted != 1000 || e.Ended[0].AtEnd != End || e.Ended[0].Account != c[0].Key) {
			t.Errorf("%+v", e.Ended)
		}
	}
}

// A reservation is taken from all accounts or from none, and the refusal says which one
// has too little.
func TestReserveAllOrNothing(t *testing.T) {
	t.Parallel()
	c := chainOf(t, []string{"reviews=10"}, []string{"reviews=4", "cost=1usd"})
	c[1].AtEnd = Pause
	before := textOf(t, c)
	_, err := reserve(c, Amounts{"reviews": 5})
	var exceeded *Exceeded
	if !errors.As(err, &exceeded) || exceeded.Account != "7" || exceeded.Wanted != 5 || exceeded.Granted != 4 || exceeded.AtEnd != Pause || exceeded.Error() == "" {
		t.Fatalf("%v", err)
	}
	if after := textOf(t, c); after != before {
		t.Errorf("a refusal changed %s to %s", before, after)
	}
	r, err := reserve(c, Amounts{"reviews": 4, CostMicros: 1_000_000})
	must(t, err)
	if want := map[Key]Amounts{c[0].Key: r.Amounts, "7": r.Amounts}; !reflect.DeepEqual(r.Held, want) {
		t.Errorf("held %v", r.Held)
	}
	if !c[0].Lines[CostMicros].Unlimited || c[0].Lines[CostMicros].Reserved != 1_000_000 {
		t.Errorf("the run does not count what only its owner limits: %s", textOf(t, c))
	}
	if _, err := reserve(c, Amounts{"reviews": 1}); !errors.As(err, &exceeded) || exceeded.Dimension != "reviews" {
		t.Errorf("one more: %v", err)
	}
}

// The use is settled, also beyond the reservation.
func TestSettle(t *testing.T) {
	t.Parallel()
	c := chainOf(t, []string{"tokens=100"}, []string{"tokens=100"})
	r, err := reserve(c, Amounts{TokensIn: 30, TokensOut: 50})
	must(t, err)
	if r.Amounts[Tokens] != 80 || c[1].Lines[Tokens].Reserved != 80 {
		t.Errorf("%+v", r)
	}
	e, err := c.Settle(r, Amounts{TokensIn: 31, TokensOut: 70}, noon)
	must(t, err)
	if want := (Amounts{TokensIn: 1, TokensOut: 20, Tokens: 21}); !reflect.DeepEqual(e.Over, want) || len(e.Warned) != 2 || len(e.Ended) != 2 {
		t.Errorf("%+v", e)
	}
	if l := c[1].Lines[Tokens]; l.Used != 101 || l.Reserved != 0 || l.Peak != 101 || l.Free() != -1 {
		t.Errorf("%+v", l)
	}
	if _, err := c.Settle(r, nil, noon); err == nil {
		t.Error("a reservation is settled twice")
	}
	if _, err := c[:1].Settle(r, nil, noon); err == nil {
		t.Error("an account that holds it is missing, and it is settled")
	}
}

// After a crash a service that may have begun has used all of it.
func TestRecover(t *testing.T) {
	t.Parallel()
	for _, begun := range []bool{false, true} {
		c := chainOf(t, []string{"tokens=100"}, nil)
		r, err := reserve(c, Amounts{TokensIn: 30, TokensOut: 50})
		must(t, err)
		r.Begun = begun
		_, err = c.Recover(r, noon)
		must(t, err)
		want := map[bool]int64{false: 0, true: 80}[begun]
		if l := c[0].Lines[Tokens]; l.Used != want || l.Assumed != want || l.Reserved != 0 {
			t.Errorf("begun %v: %+v", begun, l)
		}
	}
}

// A run without an account of a dimension cannot spend it; clove's dimensions are counted in any run.
func TestSpendingWithoutABudget(t *testing.T) {
	t.Parallel()
	c := chainOf(t, nil, nil)
	if _, err := c.Charge(Amounts{"reviews": 1}, noon); agent.KindOf(err) != agent.KindNotFound {
		t.Errorf("%v", err)
	}
	if _, err := c.Charge(Amounts{ToolCalls: 1}, noon); err != nil || c[0].Lines[ToolCalls].Used != 1 || c[1].Lines != nil {
		t.Errorf("%v, %s", err, textOf(t, c))
	}
	for _, amounts := range []Amounts{{"reviews": -1}, {"reviews": MaxAmount + 1}, {"Reviews": 1}, {cost: 1}} {
		if _, err := c.Charge(amounts, noon); agent.KindOf(err) != agent.KindInvalid {
			t.Errorf("%v: %v", amounts, err)
		}
	}
	if _, err := c[1:].Meter(Reading{CPU, 1, 5}, noon); err == nil {
		t.Error("it is metered without a run")
	}
}

// Readings are totals: one that comes twice, late or from an earlier start counts once.
func TestMeter(t *testing.T) {
	t.Parallel()
	c := chainOf(t, nil, []string{"cpu_ms=100"})
	for _, step := range []struct {
		start int
		total int64
		used  int64
		ended int
	}{{1, 0, 0, 0}, {1, 40, 40, 0}, {1, 40, 40, 0}, {1, 30, 40, 0}, {2, 0, 40, 0}, {1, 60, 40, 0}, {2, 50, 90, 0}, {2, 61, 101, 1}, {2, 70, 110, 0}} {
		e, err := c.Meter(Reading{CPU, step.start, step.total}, noon)
		must(t, err)
		if c[1].Lines[CPU].Used != step.used || len(e.Ended) != step.ended {
			t.Errorf("start %d, total %d: %+v, %+v", step.start, step.total, c[1].Lines[CPU], e)
		}
	}
	if c[0].Lines[CPU].Used != 110 || !c[0].Lines[CPU].Unlimited {
		t.Errorf("%+v", c[0].Lines[CPU])
	}
}

// A period begins anew, warns anew, and never goes back.
func TestPeriods(t *testing.T) {
	t.Parallel()
	c := chainOf(t, []string{"reviews=10/day"}, nil)
	line := c[0].Lines["reviews"]
	charge := func(amount int64, now time.Time) Effects {
		e, err := c.Charge(Amounts{"reviews": amount}, now)
		must(t, err)
		return e
	}
	if e := charge(11, noon); len(e.Warned) != 1 || len(e.Ended) != 1 {
		t.Errorf("%+v", e)
	}
	tomorrow := noon.AddDate(0, 0, 1)
	if e := charge(9, tomorrow); len(e.Warned) != 1 || line.Used != 9 || line.Peak != 11 || line.Breached {
		t.Errorf("%+v, %+v", e, line)
	}
	charge(1, noon) // the clock was set back
	if want := time.Date(2030, 2, 1, 0, 0, 0, 0, time.UTC); line.Used != 10 || !line.PeriodStart.Equal(want) {
		t.Errorf("%+v", line)
	}
	for p, ends := range map[Period]time.Time{Hour: noon.Add(30 * time.Minute), Day: noon.Add(11*time.Hour + 30*time.Minute), Month: time.Date(2030, 2, 1, 0, 0, 0, 0, time.UTC), "": {}} {
		zone := time.FixedZone("elsewhere", 5*3600)
		if got := p.End(p.Start(noon.In(zone))); !got.Equal(ends) {
			t.Errorf("%q ends at %s", p, got)
		}
	}
}

// A reservation over the end of a period counts in the period in which it is settled.
func TestReservedOverAPeriod(t *testing.T) {
	t.Parallel()
	c := chainOf(t, []string{"reviews=10/hour"}, nil)
	r, err := reserve(c, Amounts{"reviews": 8})
	must(t, err)
	later := noon.Add(time.Hour)
	next := Reservation{ID: "next", Run: runID, Amounts: Amounts{"reviews": 3}}
	if err := c.Reserve(&next, later); err == nil {
		t.Error("what is reserved was forgotten")
	}
	_, err = c.Settle(r, Amounts{"reviews": 7}, later)
	must(t, err)
	if l := c[0].Lines["reviews"]; l.Used != 7 || l.Reserved != 0 {
		t.Errorf("%+v", l)
	}
}

func TestRaiseAndReset(t *testing.T) {
	t.Parallel()
	c := chainOf(t, []string{"reviews=10"}, nil)
	_, err := c.Charge(Amounts{"reviews": 12}, noon)
	must(t, err)
	a, line := c[0], c[0].Lines["reviews"]
	e, err := a.Raise("reviews", 20, noon)
	if err != nil || len(e.Warned)+len(e.Ended) != 0 || line.Granted != 20 || line.WarnAt != 16 || line.Warned || line.Breached || line.Used != 12 {
		t.Errorf("%+v, %v, %+v", e, err, line)
	}
	if _, err := a.Raise("reviews", 19, noon); agent.KindOf(err) != agent.KindInvalid {
		t.Errorf("%v", err)
	}
	e, err = a.Set(Limit{Dimension: "reviews", Granted: 11, WarnAt: 3, Period: Day}, 9, noon)
	if err != nil || len(e.Warned) != 1 || len(e.Ended) != 1 || line.Setter != 9 || line.PeriodStart.IsZero() {
		t.Errorf("%+v, %v, %+v", e, err, line)
	}
	must(t, a.Reset("reviews", noon))
	if line.Used != 0 || line.Peak != 12 || line.Warned || line.Breached {
		t.Errorf("%+v", line)
	}
	if !line.MayChange(0) || !line.MayChange(9) || line.MayChange(10) || (&Line{Unlimited: true}).MayChange(0) != true || (&Line{Unlimited: true, Setter: 5}).MayChange(5) {
		t.Error("others may change it")
	}
	for _, err := range []error{a.Reset(CPU, noon), second(a.Raise(CPU, 5, noon))} {
		if agent.KindOf(err) != agent.KindNotFound {
			t.Errorf("%v", err)
		}
	}
}

func second(_ Effects, err error) error { return err }

func TestTooManyDimensions(t *testing.T) {
	t.Parallel()
	a := &Account{Key: "7"}
	for i := range MaxDimensions + 1 {
		_, err := a.Set(Limit{Dimension: Dimension("d" + string(rune('a'+i%26)) + string(rune('a'+i/26)))}, 0, noon)
		if (err != nil) != (i == MaxDimensions) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// Sums end at the highest number instead of wrapping around to free budget.
func TestNoOverflow(t *testing.T) {
	t.Parallel()
	c := chainOf(t, []string{"reviews=9007199254740991", "calls=1"}, nil)
	line := c[0].Lines["reviews"]
	for range 1200 {
		_, err := c.Charge(Amounts{"reviews": MaxAmount}, noon)
		must(t, err)
	}
	if line.Used != math.MaxInt64 || line.Free() > 0 {
		t.Errorf("%+v", line)
	}
	if _, err := reserve(c, Amounts{"reviews": 1}); err == nil {
		t.Error("it fits again")
	}
	line.Unlimited, line.Used = true, 0
	var last error
	for range 1200 {
		_, last = reserve(c, Amounts{"reviews": MaxAmount})
	}
	if last == nil || line.Reserved <= 0 || line.Free() < 0 {
		t.Errorf("%v, %+v", last, line)
	}
}
