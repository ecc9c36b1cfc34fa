//go:build vm

package systemd

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
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
