package daemon

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/daemon/supervisor"
)

// stop ends a run and answers when it has ended. Its policy rests.
func stop(c *call, p api.StopParams) (any, error) {
	if c.run.State == agent.StateEnded {
		// A run that waits for its restart, or has ended by itself: asked is asked.
		return api.Nothing{}, c.noteStop()
	}
	grace := c.run.Spec.Limits.StopGrace
	if p.GraceNS != nil {
		if *p.GraceNS < 0 {
			return nil, api.Failure(api.CodeParams, "", "the grace is below 0")
		}
		grace = time.Duration(*p.GraceNS)
	}
	return api.Nothing{}, c.end(p.Run, grace)
}

// noteStop puts the wish on the disk: its policy and schedule rest from now on.
func (c *call) noteStop() error {
	by := agent.Stopped{By: c.peer.String(), Time: time.Now().UTC()}
	_, err := c.records.amend(c.run.Spec.ID, agent.RunStopRequested, by.By, func(run *agent.Run) {
		run.Turn.StopAsked, run.Turn.Stopped = true, &by
	})
	return err
}

// end stops a run that has not ended, and waits until it has.
func (c *call) end(ref string, grace time.Duration) error {
	if err := detached(c.run); err != nil {
		return err
	}
	unnoted, err := c.condemn(ref)
	if err != nil {
		return err
	}
	// One that is just being started takes orders when it executes, and one that
	// has come back to the queue is taken out of it by the keeper.
	run, found, err := c.mirror.until(c, c.run.Spec.ID, func(run agent.Run, found bool) bool {
		return !found || run.State == agent.StateRunning || run.State == agent.StateEnded
	})
	if err != nil || !found || run.State == agent.StateEnded {
		return err
	}
	return c.terminate(grace, unnoted)
}

// condemn notes that the run is to end, and ends it already if it waits. The
// wish is on disk before anything is done: a cloved that dies here starts it not
// again. unnoted says why there is no such note on a run that may do without.
func (c *call) condemn(ref string) (unnoted, err error) {
	release, err := c.hold(ref)
	if err != nil {
		return nil, err
	}
	defer release()
	unnoted = c.noteStop()
	// gofail: var endNoted string
	// if err := failpoint(endNoted, ""); err != nil { return nil, err }

	switch {
	case unnoted != nil && !c.expendable():
		return nil, unnoted
	case unnoted != nil || c.run.State != agent.StateQueued:
		return unnoted, nil
	}
	err = c.dequeue()
	if kind := agent.KindOf(err); err != nil && (kind == agent.KindConflict || kind == agent.KindNotFound) {
		err = nil // its start has begun, or somebody else was faster
	}
	return nil, err
}

// terminate has the supervisor end the agent, and waits for the record.
func (c *call) terminate(grace time.Duration, unnoted error) error {
	ns := int64(grace)
	err := supervisor.Call(c, c.options.Paths.Run, c.run.Spec.ID, api.MethodRunStop, api.StopParams{GraceNS: &ns}, nil)
	if err != nil && agent.KindOf(err) != agent.KindConflict {
		return err
	}
	ctx := c.Context
	if err != nil || unnoted != nil {
		// It is ending by itself, or its supervisor has died and it is buried
		// in a moment, or its record has no place; else nobody can be asked.
		patience, cancel := context.WithTimeout(c, buryTime)
		defer cancel()
		ctx = patience
	}
	if err == nil && unnoted != nil {
		err = recordLater(c.run, unnoted)
	}
	_, _, werr := c.mirror.until(ctx, c.run.Spec.ID, func(run agent.Run, found bool) bool { return !found || run.State == agent.StateEnded })
	if werr != nil && c.Err() == nil && err != nil {
		return err
	}
	return werr
}

// expendable tells whether a run may be ended although the wish cannot be
// noted: nothing would start it again. A full disk must not keep people from
// ending what fills it.
func (c *call) expendable() bool {
	spec := c.run.Spec
	return c.run.State == agent.StateRunning && spec.Schedule == "" && spec.Restart.Policy != agent.RestartAlways && spec.Restart.Policy != agent.RestartOnFailure
}

// recordLater says that a run is ended and its record has no place yet.
func recordLater(run agent.Run, cause error) error {
	failure := api.Failure(api.CodeInternal, agent.FailureOf(cause).Hint,
		"%s is ended, and its record is stored as soon as that works: %s", run.Spec.Name, agent.FailureOf(cause).Message)
	failure.Data.Step = "store"
	return failure
}

// buryTime is how long the end of a run may take whose supervisor is gone.
const buryTime = 10 * time.Second

// signal sends the agent a signal. One that is meant to end it lays its policy
// to rest, as stop does.
func signal(c *call, p api.SignalParams) (any, error) {
	if p.Signal < 1 || p.Signal > 64 {
		return nil, api.Failure(api.CodeParams, "name a signal from 1 to 64", "%d is not a signal", p.Signal)
	}
	if err := reachable(c.run); err != nil {
		return nil, err
	}
	if number := unix.Signal(p.Signal); number == unix.SIGKILL || number == unix.SIGTERM || p.Signal == c.run.Spec.Limits.StopSignal {
		if err := c.noteStop(); err != nil && !c.expendable() {
			return nil, err
		}
	}
	return api.Nothing{}, supervisor.Call(c, c.options.Paths.Run, c.run.Spec.ID, api.MethodRunSignal, p, nil)
}

// restart ends a run if it lives, and queues it with a clean slate.
func restart(c *call, p api.RestartParams) (any, error) {
	anew := func(run *agent.Run) {
		cleanSlate(run)
		run.Turn.Fresh = p.Fresh
	}
	if c.run.State != agent.StateEnded && c.run.State != agent.StateQueued {
		if _, err := stop(c, p.StopParams); err != nil {
			return nil, err
		}
	}
	if err := c.mirror.refresh(); err != nil {
		return nil, err
	}
	run, found := c.mirror.get(c.run.Spec.ID)
	if !found {
		return nil, api.Failure(api.CodeNotFound, "leave --rm away for a run that is to be restarted", "%s kept nothing", c.run.Spec.Name)
	}
	var err error
	switch run.State {
	case agent.StateQueued: // by its policy, perhaps, and since the caller was let in
		_, err = c.records.amend(run.Spec.ID, agent.RunUpdated, "its delay is over", anew)
	case agent.StateEnded:
		_, err = c.keeper.again(run, anew)
	default: // what waited has been started since
	}
	if err != nil {
		return nil, err
	}
	// Else what it waited for before is still told: a run that was stopped in the
	// queue has its reason until the keeper looks.
	if err := c.keeper.decidedAnew(c); err != nil {
		return nil, err
	}
	return c.startedOrWaiting()
}

func cleanSlate(run *agent.Run) {
	t := &run.Turn
	t.NotBefore, t.Restarts, t.StopAsked, t.Stopped, t.GivenUp, t.Paused = time.Time{}, 0, false, nil, false, false
	if run.Spec.Schedule != "" {
		t.Scheduled, t.Settled = false, time.Now().UTC()
	}
}

// startedOrWaiting answers when a queued run executes, has failed, or has a
// reason to wait that does not pass in a moment.
func (c *call) startedOrWaiting() (any, error) {
	id := c.run.Spec.ID
	for {
		_, looked := c.keeper.reason(id)
		moved := c.mirror.changed()
		if err := c.mirror.refresh(); err != nil {
			return nil, err
		}
		run, found := c.mirror.get(id)
		reason, _ := c.keeper.obstacle(id)
		switch {
		case found && run.State == agent.StateEnded && run.Record.Status == agent.StatusStartFailed && run.Record.Error != nil:
			failure := api.Failure(api.CodeConflict, run.Record.Error.Hint, "%s", run.Record.Error.Message)
			failure.Data.Step = run.Record.Error.Step
			return nil, failure
		case !found || run.State == agent.StateEnded || run.State == agent.StateRunning || run.State == agent.StateQueued && reason != "":
			return c.result(id)
		}
		select {
		case <-looked:
		case <-moved:
		case <-c.Done():
			return nil, c.Err()
		}
	}
}
