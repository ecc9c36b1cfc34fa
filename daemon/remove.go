package daemon

import (
	"context"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/scheduler"
)

// remove forgets a run, and all that is kept of it.
func (r runs) remove(c *call, p api.RemoveParams) (any, error) {
	if err := r.forgetAll(c, p); err != nil {
		return nil, err
	}
	// A start that had begun creates the log again before it finds its run gone.
	patience, cancel := context.WithTimeout(c, reapTime)
	defer cancel()
	r.reconciler.awaitStart(patience, c.run.Spec.ID)
	return api.Nothing{}, nil
}

// forgetAll ends the call's run where it may, and forgets it.
func (r runs) forgetAll(c *call, p api.RemoveParams) error {
	id := c.run.Spec.ID
	if p.Force && c.run.State != agent.StateEnded {
		if err := r.end(c, p.Run, 0); err != nil {
			return err
		}
		if _, found := r.cache.get(id); !found {
			return nil // it had --rm
		}
	}
	release, err := r.hold(c, p.Run)
	if err != nil {
		return err
	}
	defer release()
	if err := r.lay(c); err != nil && agent.KindOf(err) != agent.KindConflict {
		return err
	}
	if err := r.sandboxes.Remove(string(id)); !c.run.Spec.Remove || agent.KindOf(err) != agent.KindNotFound {
		return err
	}
	return nil // it went with its end
}

// lay ends what waits or would wait again, and sees to it that neither policy
// nor schedule queues it again before it is gone.
func (r runs) lay(c *call) error {
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

// dequeue ends the call's run while it waits. One that is being started by now
// is its supervisor's to end: it is in conflict.
func (r runs) dequeue(c *call) error {
	return r.reconciler.dequeue(c.run.Spec.ID, queued)
}

func queued(run *agent.Run) bool { return run.State == agent.StateQueued }

// prune removes what has ended, each on its own.
func (r runs) prune(c *call, _ api.Nothing) (any, error) {
	if err := r.cache.refresh(); err != nil {
		return nil, err
	}
	result := api.PruneResult{Removed: []agent.ID{}}
	for _, run := range r.cache.all(c.peer.sees) {
		if run.State != agent.StateEnded || scheduler.StartsAgain(run) {
			continue
		}
		if err := c.Err(); err != nil {
			return nil, err
		}
		if err := r.sandboxes.Remove(string(run.Spec.ID)); err != nil {
			r.log.Warn("cannot prune", "run", run.Spec.Name, "error", err)
			continue
		}
		result.Removed = append(result.Removed, run.Spec.ID)
	}
	return result, nil
}
