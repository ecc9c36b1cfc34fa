package kernel

import (
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/audit"
)

// turn sets the rig's wall clock forward or back.
func (r *rig) turn(by time.Duration) { r.clock.Add(int64(by / time.Second)) }

// A period begins once. If the clock goes back, the use stays; if it goes forward,
// the period that contains the new time begins, however many have passed.
func TestPeriodsWhenTheClockJumps(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=10/hour"}, AtEnd: "refuse"})
	r.turn(30 * time.Minute) // the rig begins with an hour
	began := r.engine.Now().Truncate(time.Hour)
	reserve := func(amount int64, fits bool) {
		t.Helper()
		_, err := r.asAgent(agents.BudgetReserve.Name, api.BudgetReserveParams{Amounts: map[string]int64{"reviews": amount}})
		if fits {
			must(t, err)
		} else {
			wantCode(t, err, api.CodeBudget)
		}
	}
	r.charge("reviews", 8)
	for _, back := range []time.Duration{time.Minute, time.Hour, 24 * time.Hour, 365 * 24 * time.Hour} {
		r.turn(-back)
		reserve(3, false)
		if l := r.line("reviews"); l.Used != 8 {
			t.Errorf("%s back: %+v", back, l)
		}
		r.turn(back)
	}
	r.turn(5 * time.Hour)
	if l := r.line("reviews"); l.Used != 0 || !l.Since.Equal(began.Add(5*time.Hour)) {
		t.Errorf("forward, and nothing is used yet: %+v", l)
	}
	r.charge("reviews", 9)
	r.turn(-5 * time.Hour)
	reserve(2, false) // otherwise one clock that goes back and forth would give a new budget each time
	r.turn(5 * time.Hour)
	if l := r.line("reviews"); l.Used != 9 || !l.Since.Equal(began.Add(5*time.Hour)) {
		t.Errorf("back in the period that began: %+v", l)
	}
	r.turn(time.Hour)
	reserve(10, true)
}

// A grant lasts until its expiry by the wall clock. Where the clock is set beyond it, the
// network closes at once, not when a timer ends that counts seconds. The control is the
// standing before: the clock alone reports nothing.
func TestGrantsWhenTheClockJumps(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Socket: true})
	_, err := r.asUser(1000, methods.GrantGive.Name, api.GrantGiveParams{Grant: "net:a.example:443", Expires: r.engine.Now().Add(time.Hour)})
	must(t, err)
	standings := r.attach(false)
	check := func() bool {
		return answerOf[api.GrantCheckResult](t)(r.asAgent(agents.GrantCheck.Name, api.GrantCheckParams{What: "net:a.example:443"})).Allowed
	}
	if got := texts(receive(t, standings)); got != "a.example:443" || !check() {
		t.Fatalf("control: %q", got)
	}
	for _, step := range []struct {
		by   time.Duration
		want string
	}{{2 * time.Hour, ""}, {-2 * time.Hour, "a.example:443"}, {-48 * time.Hour, "a.example:443"}, {50 * time.Hour, ""}} {
		r.turn(step.by)
		if len(standings) != 0 {
			t.Fatalf("control: it is reported by itself: %+v", <-standings)
		}
		if got := check(); got != (step.want != "") {
			t.Errorf("turned by %s: checked %t", step.by, got)
		}
		must(t, r.ClockSet())
		if got := texts(receive(t, standings)); got != step.want {
			t.Errorf("turned by %s: %q, want %q", step.by, got, step.want)
		}
	}
}

// A run that was paused for its budget goes on when the clock is set into the next period.
func TestAPauseEndsWhenTheClockIsSet(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=10/day"}, AtEnd: "pause"})
	standings := r.attach(false)
	receive(t, standings)
	r.charge("reviews", 11)
	if got := texts(receive(t, standings)); got != "reviews pause, budget.warning, budget.paused" {
		t.Fatalf("control: %q", got)
	}
	r.turn(24 * time.Hour)
	must(t, r.ClockSet())
	if got := texts(receive(t, standings)); got != "" {
		t.Errorf("%q", got)
	}
}

// A reservation from before the clock was set back looks as if it were younger than the run's
// end. It is settled all the same.
func TestAnEndAfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=100"}})
	r.reserve("reviews", 10)
	r.turn(-time.Hour)
	must(t, r.Happened(r.event(agent.RunEnded), ""))
	if l := r.line("reviews"); l.Used != 10 || l.Reserved != 0 {
		t.Errorf("%+v", l)
	}
}

// The audit log has its order from its numbers, not from the clock.
func TestTheLogWhenTheClockJumps(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=100"}})
	for _, by := range []time.Duration{time.Hour, -2 * time.Hour, 365 * 24 * time.Hour, -4 * 365 * 24 * time.Hour} {
		r.turn(by)
		r.charge("reviews", 1)
	}
	wantNumbers(t, numbers(r.entries()), 1, 5)
	if report, err := audit.Verify(r.logDir(), nil, nil); err != nil || report.Problem != nil {
		t.Errorf("%+v, %v", report, err)
	}
}
