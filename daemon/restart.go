package daemon

import (
	"time"

	"clove.run/clove/agent"
)

// Backoff between the restarts of one run.
const (
	firstBackoff = time.Second
	maxBackoff   = 5 * time.Minute
	// steady is how long a run must have lasted to be told from one that fails
	// as soon as it starts: its next failure is the first one again.
	steady = 2 * time.Minute
)

// verdict is what a restart policy wants of an ended run.
type verdict struct {
	again     bool
	notBefore time.Time
	restarts  int // in a row, this one included
	giveUp    bool
	scheduled bool // not now, but at the next time of its schedule
}

// judge applies the policy of an ended run, and then its schedule. A pure
// function: asking twice gives the same answer, so a cloved that was killed in
// between asks again.
func judge(run agent.Run) verdict {
	if run.State != agent.StateEnded || run.Record == nil || run.Turn.StopAsked {
		return verdict{}
	}
	wanted := run.Spec.Restart.Policy == agent.RestartAlways ||
		run.Spec.Restart.Policy == agent.RestartOnFailure && run.Record.ExitCode != 0
	if !wanted || run.Turn.GivenUp {
		onTime := run.Spec.Schedule != ""
		return verdict{again: onTime, scheduled: onTime}
	}
	restarts := run.Turn.Restarts
	if time.Duration(run.Record.WallMS)*time.Millisecond >= steady {
		restarts = 0
	}
	if maximum := run.Spec.Restart.Max; maximum > 0 && restarts >= maximum {
		return verdict{giveUp: true}
	}
	return verdict{again: true, restarts: restarts + 1, notBefore: run.Record.Ended.Add(backoff(restarts))}
}

// backoff doubles with each restart in a row.
func backoff(restarts int) time.Duration {
	delay := firstBackoff
	for range restarts {
		if delay *= 2; delay >= maxBackoff {
			return maxBackoff
		}
	}
	return delay
}
