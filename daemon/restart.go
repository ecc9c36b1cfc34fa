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

// restart puts those that have ended back into the queue when their policy
// says so.
func (k *keeper) restart() error {
	for _, run := range k.mirror.all(judged) {
		v := judge(run)
		var err error
		if v.giveUp {
			k.log.Warn("a run is given up", "run", run.Spec.Name, "restarts", run.Turn.Restarts)
			_, err = k.records.amend(run.Spec.ID, agent.RunGivenUp, "", func(r *agent.Run) { r.Turn.GivenUp = true })
		} else {
			_, err = k.again(run, func(r *agent.Run) {
				r.Turn.Restarts, r.Turn.NotBefore, r.Turn.Scheduled = v.restarts, v.notBefore, v.scheduled
				if !v.scheduled {
					r.Turn.NotBefore = notLater(v.notBefore, time.Now().UTC())
				}
				r.Turn.Fresh = v.scheduled && !r.Spec.KeepFiles
				r.Turn.GivenUp = r.Turn.GivenUp && !v.scheduled
			})
		}
		if err != nil && agent.KindOf(err) != agent.KindConflict && agent.KindOf(err) != agent.KindNotFound {
			return err
		}
	}
	return nil
}

// judged tells whether the run's policy or schedule wants something, at little cost for
// the many that have none.
func judged(run *agent.Run) bool {
	if run.Spec.Schedule == "" && !run.Spec.Restart.Policy.Restarts() {
		return false
	}
	v := judge(*run)
	return v.again || v.giveUp
}

// again queues an ended run; change writes what its turn is to be. It is in
// conflict where the run has not ended, or not any more. Its layer stays, if only for clove diff, until it
// is started (Turn.Fresh).
func (k *keeper) again(run agent.Run, change func(*agent.Run)) (agent.Run, error) {
	queued, err := k.records.requeue(run.Spec.ID, func(r *agent.Run) {
		r.Turn.Since = time.Now().UTC()
		r.Turn.Starts, r.Turn.Paused = r.Turn.Starts+1, false
		change(r)
	})
	// gofail: var againQueued string
	// failpoint(againQueued, "")

	return queued, err
}
