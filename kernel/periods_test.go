package kernel

import (
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/kernel/budget"
)

// at sets the clock of a rig.
func (r *rig) at(t time.Time) { r.clock.Store(t.Unix()) }

// A period begins anew at the end of the UTC hour, day and month. A clock that is set back,
// also while cloved does not run, gives nothing back: the use in the period that began last
// counts until that ends.
func TestPeriodsNeverGoBack(t *testing.T) {
	t.Parallel()
	end := time.Date(2028, 2, 29, 23, 59, 59, 0, time.UTC) // of an hour, a day and a month
	for period, step := range map[string]time.Duration{"hour": time.Hour, "day": 24 * time.Hour, "month": 31 * 24 * time.Hour} {
		r := newRig(t, agent.Kernel{Budgets: []string{"reviews=100/" + period}, AtEnd: "refuse"})
		want := func(when string, used int64, since time.Time) {
			t.Helper()
			if l := r.line("reviews"); l.Used != used || !l.Since.Equal(since) {
				t.Errorf("%s, %s: %+v, want %d since %s", period, when, l, used, since)
			}
		}
		next := end.Add(time.Second)
		r.at(end)
		r.set(budget.OwnerKey(1000), "refuse", "reviews=100/"+period) // now, like the run's
		r.charge("reviews", 60)
		want("before its end", 60, budget.Period(period).Start(end))
		r.at(next)
		want("in the next, before anything is used", 0, next)
		r.charge("reviews", 70)
		r.at(end)
		want("set back", 70, next)
		r.charge("reviews", 20)
		r.at(end.AddDate(-1, 0, 0))
		r.close()
		r.open()
		r.attach(true)
		want("set back by a year while cloved was away", 90, next)
		if err := r.tryReserve(11); err == nil {
			t.Errorf("%s: a clock that was set back gives more", period)
		}
		if err := r.tryReserve(10); err != nil {
			t.Errorf("%s: control: %v", period, err)
		}
		r.at(next.Add(step))
		want("in the one after", 0, budget.Period(period).Start(next.Add(step)))
	}
}

// A run that is paused for a budget with a period goes on when that ends, also without
// a call: the Kernel waits for it on a real clock.
func TestAPausedRunGoesOnWithTheNextPeriod(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=10/hour"}, AtEnd: "pause"})
	r.at(time.Date(2028, 2, 29, 23, 59, 59, 0, time.UTC))
	standings := r.attach(false)
	r.charge("reviews", 11)
	if got := latest(standings); got != "reviews pause, budget.warning, budget.paused" {
		t.Fatalf("%q", got)
	}
	r.clock.Add(1)
	select {
	case now := <-standings:
		if got := texts(now); got != "" {
			t.Errorf("%q", got)
		}
	case <-time.After(patience):
		t.Error("it stands still for ever")
	}
}

// A clock that is set forward ends a pause too, at the next look at it.
func TestAClockSetForwardEndsAPause(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=10/month"}, AtEnd: "pause"})
	standings := r.attach(false)
	r.charge("reviews", 11)
	latest(standings)
	r.clock.Add(32 * 24 * 3600)
	must(t, r.ClockSet()) // what the timer does
	if got := latest(standings); got != "" {
		t.Errorf("%q", got)
	}
}
