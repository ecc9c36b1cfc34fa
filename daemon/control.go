package daemon

import (
	"cmp"
	"context"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

// stop ends a run and answers when it has ended. Its restart policy is suspended.
func (r runs) stop(c *request, p api.StopParams) (api.Nothing, error) {
	if c.run.State == agent.StateEnded {
		// Its restart policy may start it again: the stop is stored all the same.
		return api.Nothing{}, r.noteStop(c)
	}
	grace := c.run.Spec.Limits.StopGrace
	if p.GraceNS != nil {
		// 0 is allowed: no grace.
		if *p.GraceNS < 0 {
			return api.Nothing{}, api.Failure(api.CodeParams, "", "the grace is below 0")
		}
		grace = time.Duration(*p.GraceNS)
	}
	return api.Nothing{}, r.end(c, p.Run, grace)
}

// noteStop stores that a stop was asked for: policy and schedule are suspended from
// now on, also for the next cloved.
func (r runs) noteStop(c *request) error {
	by := agent.Stopped{By: c.peer.String(), Time: time.Now().UTC()}
	_, err := r.records.amend(c.run.Spec.ID, agent.RunStopRequested, by.By, func(run *agent.Run) {
		run.MarkForStop(by)
		// The call of an agent above is stored already. Else it follows from the parent's end.
		run.Queue.Cause = cmp.Or(c.call, run.Queue.Cause, string(run.Parent))
	})
	return err
}

// end stops a run that has not ended, and waits until it has.
func (r runs) end(c *request, ref string, grace time.Duration) error {
	if err := detached(c.run); err != nil {
		return err
	}
	unnoted, err := r.markForStop(c, ref)
	if err != nil {
		return err
	}
	// A run that is just being started can be stopped once it executes. One that its
	// policy has queued again is ended by the reconciler.
	run, found, err := r.cache.until(c, c.run.Spec.ID, func(run agent.Run, found bool) bool {
		return !found || run.State == agent.StateRunning || run.State == agent.StateEnded
	})
	if err != nil || !found || run.State == agent.StateEnded {
		return err
	}
	return r.terminate(c, grace, unnoted)
}

// markForStop stores that the run is to end, and ends it at once if it is queued. The
// mark is on disk before anything is done: if cloved dies here, the next one does not
// start the run again. unnoted is why the mark could not be stored, of a run that may
// be ended without (expendable).
func (r runs) markForStop(c *request, ref string) (unnoted, err error) {
	// Until the mark is stored, and no longer: the wait for the end must not hold up renames.
	release, err := r.hold(c, ref)
	if err != nil {
		return nil, err
	}
	defer release()
	unnoted = r.noteStop(c)
	// gofail: var endNoted string
	// if err := failpoint(endNoted, ""); err != nil { return nil, err }

	switch {
	// Nothing has been done to the run yet, so the caller can simply try again.
	case unnoted != nil && !expendable(c.run):
		return nil, unnoted
	case unnoted != nil || c.run.State != agent.StateQueued:
		return unnoted, nil
	}
	err = r.dequeue(c)
	if kind := agent.KindOf(err); err != nil && (kind == agent.KindConflict || kind == agent.KindNotFound) {
		err = nil // its start has begun, or another request ended it
	}
	return nil, err
}

// terminate has the supervisor end the agent, and waits for the record.
func (r runs) terminate(c *request, grace time.Duration, unnoted error) error {
	ns := int64(grace)
	err := r.supervisors.call(c, c.run.Spec.ID, methods.RunStop.Name, api.StopParams{GraceNS: &ns}, nil)
	if err != nil && agent.KindOf(err) != agent.KindConflict {
		return err
	}
	ctx := c.Context
	if err != nil || unnoted != nil {
		// It ends by itself, or its supervisor has died and cloved cleans up after it
		// in a moment, or its record cannot be stored. There is no supervisor to wait
		// for, so the wait has a limit.
		patience, cancel := context.WithTimeout(c, reapTime)
		defer cancel()
		ctx = patience
	}
	// Returned only if the record is not stored within the limit.
	if err == nil && unnoted != nil {
		err = recordLater(c.run, unnoted)
	}
	_, _, werr := r.cache.until(ctx, c.run.Spec.ID, func(run agent.Run, found bool) bool { return !found || run.State == agent.StateEnded })
	if werr != nil && c.Err() == nil && err != nil {
		return err
	}
	return werr
}

// expendable reports whether a run may be ended although the stop cannot be stored:
// neither policy nor schedule would start it again. On a full disk, users must be able
// to end the run that fills it.
func expendable(run agent.Run) bool {
	spec := run.Spec
	return run.State == agent.StateRunning && spec.Schedule == "" && spec.Restart.Policy != agent.RestartAlways && spec.Restart.Policy != agent.RestartOnFailure
}

// recordLater is the answer for a run that is ended and whose record could not be stored yet.
func recordLater(run agent.Run, cause error) error {
	failure := api.Failure(api.CodeInternal, agent.FailureOf(cause).Hint,
		"%s is ended, and its record is stored as soon as that works: %s", run.Spec.Name, agent.FailureOf(cause).Message)
	failure.Data.Step = "store"
	return failure
}

// reapTime is how long the end of a run may take whose supervisor is gone.
const reapTime = 10 * time.Second

// signal sends the agent a signal. KILL, TERM, POLICY and the run's stop signal suspend its
// restart policy, as stop does.
func (r runs) signal(c *request, p api.SignalParams) (api.Nothing, error) {
	if err := checkSignal(p); err != nil {
		return api.Nothing{}, err
	}
	if err := reachable(r.executing(c)); err != nil {
		return api.Nothing{}, err
	}
	if p.Own() && p.Reason == "" {
		name := map[bool]string{true: "BUDGET", false: "POLICY"}[p.Budget]
		p.Reason = "the signal " + name + " of " + c.peer.String()
	}
	if number := unix.Signal(p.Signal); p.Own() || number == unix.SIGKILL || number == unix.SIGTERM || p.Signal == c.run.Spec.Limits.StopSignal {
		// Stored before the signal is sent, as for a stop: the agent may end of it at once,
		// and the policy must know then.
		if err := r.noteStop(c); err != nil && !expendable(c.run) {
			return api.Nothing{}, err
		}
	}
	return api.Nothing{}, r.supervisors.call(c, c.run.Spec.ID, methods.RunSignal.Name, p, nil)
}

// executing waits for a run that is just being started, so that a signal to it is not lost.
func (r runs) executing(c *request) agent.Run {
	if c.run.State != agent.StateStarting || detached(c.run) != nil {
		return c.run
	}
	patience, cancel := context.WithTimeout(c, startTime)
	defer cancel()
	run, found, err := r.cache.until(patience, c.run.Spec.ID, func(run agent.Run, found bool) bool { return !found || run.State != agent.StateStarting })
	if !found || err != nil {
		return c.run // which is refused: it is as it was
	}
	return run
}

// startTime is how long a signal waits for the start of its run.
const startTime = 30 * time.Second

// checkSignal refuses a request that means no signal, or two.
func checkSignal(p api.SignalParams) error {
	switch {
	case p.Policy && p.Budget, p.Own() && p.Signal != 0, !p.Own() && (p.Signal < 1 || p.Signal > 64):
		return api.Failure(api.CodeParams, "name a signal from 1 to 64, or policy or budget alone", "%d is not a signal", p.Signal)
	case !p.Own() && p.Reason != "":
		return api.Failure(api.CodeParams, "omit it: only policy and budget have one", "a signal has no reason")
	}
	return agent.ValidateReason(p.Reason)
}

// restart ends a live run and queues it. Its policy and schedule are active again.
func (r runs) restart(c *request, p api.RestartParams) (api.RunResult, error) {
	// Called within the transaction, so its time is that of the change.
	restart := func(run *agent.Run) { run.Restart(p.Fresh, time.Now().UTC()) }
	if c.run.State != agent.StateEnded && c.run.State != agent.StateQueued {
		if _, err := r.stop(c, p.StopParams); err != nil {
			return api.RunResult{}, err
		}
	}
	if err := r.cache.refresh(); err != nil {
		return api.RunResult{}, err
	}
	// Looked up again: the access check saw the run before the stop, and policy, schedule
	// and other callers go on meanwhile.
	run, found := r.cache.get(c.run.Spec.ID)
	if !found {
		return api.RunResult{}, api.Failure(api.CodeNotFound, "omit --rm for a run that is to be restarted", "%s kept nothing", c.run.Spec.Name)
	}
	var err error
	switch run.State {
	case agent.StateQueued: // perhaps by its policy, after the access check
		_, err = r.records.amend(run.Spec.ID, agent.RunUpdated, "its delay is over", restart)
	case agent.StateEnded:
		_, err = r.reconciler.requeue(run.Spec.ID, restart)
	default: // it was queued, and has been started meanwhile
	}
	if err != nil {
		return api.RunResult{}, err
	}
	// Without this the answer could have the reason of before: a run that was stopped in
	// the queue keeps its reason until the reconciler looks.
	if err := r.reconciler.decidedAnew(c); err != nil {
		return api.RunResult{}, err
	}
	return r.startedOrWaiting(c)
}

// startedOrWaiting answers when a queued run executes, has failed, or waits for more
// than other starts.
func (r runs) startedOrWaiting(c *request) (api.RunResult, error) {
	id := c.run.Spec.ID
	for {
		// Both taken before the look at the store and the queue: what changes in between
		// wakes this loop at once.
		_, looked := r.reconciler.reason(id)
		moved := r.cache.changed()
		if err := r.cache.refresh(); err != nil {
			return api.RunResult{}, err
		}
		run, found := r.cache.get(id)
		reason, _ := r.reconciler.obstacle(id)
		switch {
		case found && run.State == agent.StateEnded && run.Record.NotStarted() && run.Record.Error != nil:
			failure := api.Failure(api.CodeConflict, run.Record.Error.Hint, "%s", run.Record.Error.Message)
			failure.Data.Step = run.Record.Error.Step
			return api.RunResult{}, failure
		case !found || run.State == agent.StateEnded || run.State == agent.StateRunning || run.State == agent.StateQueued && reason != "":
			return r.result(id)
		}
		select {
		case <-looked:
		case <-moved:
		case <-c.Done():
			return api.RunResult{}, c.Err()
		}
	}
}
