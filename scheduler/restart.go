package scheduler

import (
	"time"

	"clove.run/clove/agent"
)

// Backoff between the restarts of one run.
const (
	firstBackoff = time.Second
	MaxBackoff   = 5 * time.Minute
	// steady is how long a run must have lasted to count as one that worked: its
	// next failure is the first one again.
	steady = 2 * time.Minute
)

// nextStart is what its policy and its schedule want of an ended run; the zero value:
// nothing.
type nextStart struct {
	again     bool
	notBefore time.Time
	restarts  int // in a row, this one included
	giveUp    bool
	scheduled bool // not now, but at the next time of its schedule
}

// nextStartOf applies the policy of an ended run, and then its schedule.
func nextStartOf(run *agent.Run) nextStart {
	phase := run.Phase()
	if run.Record == nil || phase != agent.PhaseEnded && phase != agent.PhaseGivenUp {
		return nextStart{}
	}
	// A deadline is of all starts. The end by it may come before it, as the agent is asked to end.
	if run.Overdue(run.Record.Ended) || run.Record.Error != nil && run.Record.Error.Step == agent.StepDeadline {
		return nextStart{}
	}
	// A run that was ended because it was idle starts again for what it waited for, or at a time.
	idle := run.Record.Status == agent.StatusIdle
	wanted := !idle && run.Spec.Restart.Policy == agent.RestartAlways ||
		run.Spec.Restart.Policy == agent.RestartOnFailure && run.Record.ExitCode != 0
	// The policy comes first: within one time of a schedule, a failure is tried again
	// before the next time counts.
	if !wanted || phase == agent.PhaseGivenUp {
		onTime := run.Spec.Schedule != ""
		return nextStart{again: onTime, scheduled: onTime}
	}
	restarts := run.Queue.Restarts
	if time.Duration(run.Record.WallMS)*time.Millisecond >= steady {
		restarts = 0
	}
	if maximum := run.Spec.Restart.Max; maximum > 0 && restarts >= maximum {
		return nextStart{giveUp: true}
	}
	return nextStart{again: true, restarts: restarts + 1, notBefore: run.Record.Ended.Add(backoff(restarts))}
}

// backoff doubles with each restart in a row.
func backoff(restarts int) time.Duration {
	delay := firstBackoff
	for range restarts {
		if delay *= 2; delay >= MaxBackoff {
			return MaxBackoff
		}
	}
	return delay
}

// StartsAgain reports whether a run that has ended will be queued again by its
// policy or its schedule.
func StartsAgain(run agent.Run) bool { return nextStartOf(&run).again }
