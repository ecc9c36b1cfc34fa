package daemon

import (
	"time"

	"clove.run/clove/agent"
)

// clockSlack is what a clock may be corrected by without anybody noticing.
const clockSlack = time.Second

// redate keeps the waits of queued runs when the clock was set back: one that
// was queued later than now would wait for a date, and not for as long as it
// was to wait. A clock that was set forward only shortens waits.
func (k *keeper) redate(now time.Time) error {
	for _, run := range k.mirror.all(func(run *agent.Run) bool { return misdated(*run, now) }) {
		_, err := k.records.amend(run.Spec.ID, agent.RunUpdated, "the clock was set back", func(r *agent.Run) {
			if misdated(*r, now) {
				r.Turn.NotBefore = now.Add(r.Turn.NotBefore.Sub(r.Turn.Since))
				r.Turn.Since = now
			}
		})
		if err != nil && agent.KindOf(err) != agent.KindConflict && agent.KindOf(err) != agent.KindNotFound {
			return err
		}
	}
	return nil
}

// misdated tells whether the run joined the queue at a time that is yet to come,
// and waits for one behind it. The wait itself, NotBefore less Since, is right.
func misdated(run agent.Run, now time.Time) bool {
	return run.State == agent.StateQueued && run.Turn.Since.After(now.Add(clockSlack)) && run.Turn.NotBefore.After(run.Turn.Since)
}

// notLater bounds what a policy waits from now: the end that it counts from may
// bear a date of a clock that was set back since.
func notLater(due, now time.Time) time.Time {
	if latest := now.Add(maxBackoff); due.After(latest) {
		return latest
	}
	return due
}
