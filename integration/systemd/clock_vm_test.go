//go:build vm

package systemd

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/client"
)

const year = 365 * 24 * time.Hour

// turnClock sets the wall clock forward or back.
func turnClock(t *testing.T, by time.Duration) {
	t.Helper()
	now := unix.NsecToTimespec(time.Now().Add(by).UnixNano())
	if err := unix.ClockSettime(unix.CLOCK_REALTIME, &now); err != nil {
		t.Fatal(err)
	}
}

// rememberClock returns a function that sets the clock as if it had not been changed.
func rememberClock(t *testing.T) func() {
	t.Helper()
	offset := time.Duration(time.Now().UnixNano() - sinceBoot(t))
	return func() { turnClock(t, time.Until(time.Unix(0, sinceBoot(t)).Add(offset).Round(0))) }
}

func sinceBoot(t *testing.T) int64 {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		t.Fatal(err)
	}
	return now.Nano()
}

// If the clock is set forward and back by a year, no agent ends early or late, and none waits
// for a year.
func TestSystemdClock(t *testing.T) {
	installed(t)
	const limit = time.Minute
	detach(t, "timed", counting, "--timeout", limit.String())
	detach(t, "flaky", "exit 1", "--restart", "always")
	detach(t, "delayed", counting, "--delay", "15s")
	before := look(t, "timed")
	restore := rememberClock(t)
	t.Cleanup(restore)
	turnClock(t, year)
	goesOn(t, "timed", before)
	// From a year in the future to a year in the past.
	turnClock(t, -2*year)
	back := time.Now()
	goesOn(t, "timed", before)
	starts := inspect(t, "flaky").Queue.Starts
	until(t, "the policy starts it again, and once more", func() bool { return inspect(t, "flaky").Queue.Starts > starts+1 })
	until(t, "the delay is over", func() bool { return inspect(t, "delayed").State == agent.StateRunning })
	turnClock(t, year)
	if r := try(t, "clove", "wait", "timed"); r.code != agent.ExitTimeout {
		t.Errorf("%d, %s", r.code, r.text)
	}
	// The deadline's clock counted real seconds.
	ran := time.Duration(inspect(t, "timed").Record.WallMS) * time.Millisecond
	if ran < limit || ran > limit+30*time.Second {
		t.Errorf("it ran for %v of %v", ran, limit)
	}
	t.Logf("ran %v; the clock was set back to %s meanwhile", ran, back.Format(time.DateOnly))
}

// A period begins and a grant expires when the wall clock is set, not when a timer ends that
// counts seconds. Set back, the period stays the one that has begun.
func TestSystemdClockOfGrantsAndBudgets(t *testing.T) {
	installed(t)
	detach(t, "daily", counting, "--grant", "tool:other", "--budget", "reviews=10/day", "--at-end", "pause")
	do(t, "clove", "grant", "give", "--expires", "1h", "daily", "tool:fetch")
	allowed := func() bool { return try(t, "clove", "grant", "check", "daily", "tool:fetch").code == 0 }
	charge(t, "daily", 11)
	until(t, "it is frozen", func() bool { return frozen(t, "daily") })
	if !allowed() {
		t.Error("control: the grant allows nothing before its expiry")
	}
	restore := rememberClock(t)
	t.Cleanup(restore)
	turnClock(t, 24*time.Hour)
	until(t, "it goes on in the next period", func() bool { return !frozen(t, "daily") })
	if allowed() {
		t.Error("the grant allows something after its expiry")
	}
	charge(t, "daily", 11)
	until(t, "it is frozen again", func() bool { return frozen(t, "daily") })
	turnClock(t, -48*time.Hour)
	if !allowed() {
		t.Error("the grant does not follow the clock back")
	}
	if !frozen(t, "daily") {
		t.Error("the clock that was set back gave a new budget")
	}
	restore()
}

// charge is a charge of reviews by root.
func charge(t *testing.T, run string, amount int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := client.Dial(ctx, "/run/clove/clove.sock")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	params := api.BudgetChargeParams{RunParams: api.RunParams{Run: run}, Amounts: map[string]int64{"reviews": amount}}
	if _, err := client.Do(ctx, c, agents.BudgetCharge, params); err != nil {
		t.Fatal(err)
	}
}

// frozen reports whether all processes of a run stand still.
func frozen(t *testing.T, run string) bool {
	t.Helper()
	lease := inspect(t, run).Lease
	if lease == nil {
		return false
	}
	text, err := os.ReadFile(lease.Cgroups[""] + "/cgroup.events")
	return err == nil && strings.Contains(string(text), "frozen 1")
}
