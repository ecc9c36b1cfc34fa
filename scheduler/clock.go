package scheduler

import (
	"time"

	"clove.run/clove/agent"
)

// clockSlack is by how much a clock may be corrected, by NTP for instance, without counting
// as set back.
const clockSlack = time.Second

// setBack is the detail of every event that repairs a time.
const setBack = "the clock was set back"

// misdated reports whether the run joined the queue at a time that is yet to
// come, and waits for one behind it: the clock was set back. It would wait for a
// date, and not for as long as it was to wait. A clock that was set forward only
// shortens waits.
func misdated(run *agent.Run, now time.Time) bool {
	return run.State == agent.StateQueued && run.Queue.Since.After(now.Add(clockSlack)) && run.Queue.NotBefore.After(run.Queue.Since)
}

// redate has the run join the queue now. The wait itself, NotBefore less Since,
// was right.
func redate(run *agent.Run, now time.Time) {
	if misdated(run, now) {
		// NotBefore first: it is computed from the old Since.
		run.Queue.NotBefore = now.Add(run.Queue.NotBefore.Sub(run.Queue.Since))
		run.Queue.Since = now
	}
}

// notLater bounds what a policy waits from now: the end that it counts from may
// bear a date of a clock that was set back since.
func notLater(due, now time.Time) time.Time {
	if latest := now.Add(MaxBackoff); due.After(latest) {
		return latest
	}
	return due
}
