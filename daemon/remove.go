package daemon

import (
	"context"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/scheduler"
)

// remove removes a run: record, layer, log and name.
func (r runs) remove(c *request, p api.RemoveParams) (api.Nothing, error) {
	if err := r.forgetAll(c, p); err != nil {
		return api.Nothing{}, err
	}
	// A start that has begun creates the log again before it finds that its run is gone.
	patience, cancel := context.WithTimeout(c, reapTime)
	defer cancel()
	r.reconciler.awaitStart(patience, c.run.Spec.ID)
	return api.Nothing{}, nil
}

// forgetAll ends the call's run where force allows that, and removes it.
func (r runs) forgetAll(c *request, p api.RemoveParams) error {
	id := c.run.Spec.ID
	if p.Force && c.run.State != agent.StateEnded {
		if err := r.end(c, p.Run, 0); err != nil {
			return err
		}
		if _, found := r.cache.get(id); !found {
			return nil // with --rm it is removed with its end
		}
	}
	release, err := r.hold(c, p.Run)
	if err != nil {
		return err
	}
	defer release()
	if err := r.suspend(c); err != nil && agent.KindOf(err) != agent.KindConflict {
		return err
	}
	// A conflict of suspend's was passed over: the run's start has begun, and Remove
	// refuses it.
	if err := r.sandboxes.Remove(string(id)); !c.run.Spec.Remove || agent.KindOf(err) != agent.KindNotFound {
		return err
	}
	return nil // with --rm it is removed with its end
}

// suspend ends a queued run, and suspends policy and schedule: they must not queue the run
// again before it is removed.
func (r runs) suspend(c *request) error {
	if c.run.State == agent.StateQueued || scheduler.StartsAgain(c.run) {
		if err := r.noteStop(c); err != nil {
			return err
		}
	}
	if err := r.cache.refresh(); err != nil {
		return err
	}
	if now, found := r.cache.get(c.run.Spec.ID); found && now.State == agent.StateQueued {
		return r.dequeue(c)
	}
	return nil
}

// dequeue ends the call's queued run. If its start has begun, the error is a conflict: then
// only its supervisor can end it. The state is compared while this process has the store, so
// the two cannot both win.
func (r runs) dequeue(c *request) error {
	return r.reconciler.dequeue(c.run.Spec.ID, queued)
}

// queued is the condition for dequeue that any wait in the queue meets.
func queued(run *agent.Run) bool { return run.State == agent.StateQueued }

// prune removes the ended runs. One that cannot be removed does not keep the others.
func (r runs) prune(c *request, _ api.Nothing) (api.PruneResult, error) {
	if err := r.cache.refresh(); err != nil {
		return api.PruneResult{}, err
	}
	result := api.PruneResult{Removed: []agent.ID{}}
	for _, run := range r.cache.all(c.peer.sees) {
		// A run that waits for its restart is no leftover, although it has ended.
		if run.State != agent.StateEnded || scheduler.StartsAgain(run) {
			continue
		}
		if err := c.Err(); err != nil {
			return api.PruneResult{}, err
		}
		if err := r.sandboxes.Remove(string(run.Spec.ID)); err != nil {
			r.log.Warn("cannot prune", "run", run.Spec.Name, "error", err)
			continue
		}
		result.Removed = append(result.Removed, run.Spec.ID)
	}
	return result, nil
}
