package scheduler

import (
	"time"

	"clove.run/clove/agent"
)

// Change is what one stored run is to become.
type Change struct {
	// What is the event to store: agent.RunRequeued queues the run again,
	// agent.RunEnded ends it in the queue, and any other one only notes what
	// Apply changes. Empty: there is nothing to do.
	What   agent.RunEventKind
	Detail string           // of the event, for people
	Apply  func(*agent.Run) // changes the run as it is stored by then; nil where it ends
}

// MayChange reports whether Settle is worth its time, at little cost for the
// many runs that have neither a policy nor a schedule.
func MayChange(run *agent.Run, now time.Time) bool {
	return run.Spec.Schedule != "" || run.State == agent.StateEnded && run.Spec.Restart.Policy.Restarts() ||
		run.State == agent.StateQueued && (run.Phase() == agent.PhaseLeaving || !run.Deadline.IsZero() || misdated(run, now))
}

// Leaves reports whether a run is to end in the queue.
func Leaves(run *agent.Run, now time.Time) bool {
	return run.Phase() == agent.PhaseLeaving || run.State == agent.StateQueued && run.Overdue(now)
}

// Settle returns the change that is due for a run, the first where there are
// several. wake is when the clock means something to it next; zero: never.
func Settle(run *agent.Run, now time.Time) (change Change, wake time.Time) {
	switch {
	case misdated(run, now):
		return Change{agent.RunUpdated, setBack, func(r *agent.Run) { redate(r, now) }}, wake
	case Leaves(run, now):
		// Its deadline has come; cloved died between the note of a stop and the stop itself,
		// or a policy had queued the run a moment before.
		return Change{What: agent.RunEnded}, wake
	}
	// Times that came while a run was busy are settled before its end is judged.
	if change, wake = onTime(run, now); change.What != "" {
		return change, wake
	}
	if run.State == agent.StateQueued {
		wake = Sooner(wake, run.Deadline)
	}
	return onEnd(run, now), wake
}

// onTime is the change that a schedule asks for.
func onTime(run *agent.Run, now time.Time) (change Change, wake time.Time) {
	if !Scheduled(run) {
		return change, wake
	}
	times, err := crontab.Parse(run.Spec.Schedule)
	if err != nil {
		return change, wake // its zone is gone from this host: waitsForTime says so
	}
	e := clockEventOf(run, times, now)
	return Change{e.what, e.detail, func(r *agent.Run) {
		r.Queue.Settled = e.settled
		if e.due {
			r.Due(now)
		}
	}}, e.wake
}

// onEnd is the change that an end asks for.
func onEnd(run *agent.Run, now time.Time) Change {
	switch next := nextStartOf(run); {
	case next.giveUp:
		return Change{What: agent.RunGivenUp, Apply: (*agent.Run).GiveUp}
	case next.scheduled:
		return Change{What: agent.RunRequeued, Apply: func(r *agent.Run) { r.RequeueBySchedule(now) }}
	case next.again:
		due := notLater(next.notBefore, now)
		return Change{What: agent.RunRequeued, Apply: func(r *agent.Run) { r.RequeueByPolicy(next.restarts, due, now) }}
	}
	return Change{}
}
