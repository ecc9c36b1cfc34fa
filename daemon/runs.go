package daemon

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/daemon/supervisor"
	"clove.run/clove/scheduler"
	"clove.run/clove/store"
)

// start stores a run, and answers when it executes or has a reason to wait that
// does not pass in a moment.
func start(c *call, p api.StartParams) (any, error) {
	spec := p.Spec
	if spec.ID == "" {
		spec.ID = agent.NewID()
	}
	spec.Detached = true
	if err := c.cache.refresh(); err != nil { // what it comes after may be new
		return nil, err
	}
	if err := c.checkSpec(spec); err != nil {
		return nil, err
	}
	if err := c.checkUser(spec); err != nil {
		return nil, err
	}
	var err error
	if spec.After, err = c.comesAfter(spec.Name, spec.After); err != nil {
		return nil, err
	}
	now := time.Now().UTC()
	run := agent.Run{Spec: spec, Owner: c.peer.owner, Created: now, Turn: agent.NewTurn(spec, now)}
	if p.DelayNS > 0 && spec.Foreground {
		return nil, api.Failure(api.CodeParams, "leave one of them away", "a run in the foreground starts at once, and there is a delay")
	}
	if p.DelayNS > 0 {
		run.Turn.NotBefore = now.Add(time.Duration(p.DelayNS))
	}
	c.tracer.About(c, run)
	run.Turn.Trace = c.tracer.Carry(c)
	_, decided := c.reconciler.reason(spec.ID)
	answer := c.reconciler.expect(spec.ID)
	defer c.reconciler.forget(spec.ID, answer)
	if p.Size != nil {
		defer c.reconciler.seat(spec.ID, p.Size)()
	}
	// gofail: var startAsked string
	// if err := failpoint(startAsked, ""); err != nil { return nil, err }

	if err := c.admit(run); err != nil {
		return nil, err
	}
	// gofail: var startQueued string
	// if err := failpoint(startQueued, ""); err != nil { return nil, err }

	c.log.Info("queued", "run", spec.Name, "id", spec.ID, "peer", c.peer.String())
	c.reconciler.nudge()
	return c.firstTurn(spec, answer, decided)
}

// firstTurn answers for a run that was just queued. Others may have ended it
// before the reconciler came to it: then there will be no answer.
func (c *call) firstTurn(spec agent.Spec, answer <-chan supervisor.Answer, decided <-chan struct{}) (any, error) {
	for {
		select {
		case a := <-answer:
			if a.Error != nil {
				return nil, a.Error
			}
			return c.result(spec.ID)
		case <-decided:
			var reason string
			if reason, decided = c.reconciler.obstacle(spec.ID); reason != "" {
				if !spec.Foreground {
					return c.result(spec.ID)
				}
				if err := c.withdraw(spec, reason); agent.KindOf(err) != agent.KindConflict {
					return nil, err
				} // its start has begun
			}
			if err := c.cache.refresh(); err != nil {
				return nil, err
			}
			run, found := c.cache.get(spec.ID)
			// Looked at last: a start that ended it has given its answer by then.
			if !c.reconciler.at(spec.ID) && len(answer) == 0 && (!found || run.State == agent.StateEnded) {
				return nil, store.Unqueued(spec.Name)
			}
		case <-c.Done():
			return nil, c.Err()
		}
	}
}

// withdraw takes a foreground run that would have to wait out of the queue again:
// nobody sits before it until its turn comes.
func (c *call) withdraw(spec agent.Spec, reason string) error {
	if err := c.reconciler.dequeue(spec.ID, queued); err != nil {
		return err
	}
	if err := c.sandboxes.Remove(string(spec.ID)); err != nil && agent.KindOf(err) != agent.KindNotFound {
		return err
	}
	return api.Failure(api.CodeBusy, "with -d it waits for its turn", "%s would have to wait: %s", spec.Name, reason)
}

// admit stores a run that its owner has room for, under an id that is new.
func (c *call) admit(run agent.Run) error {
	c.admission.Lock()
	defer c.admission.Unlock()
	if err := c.cache.refresh(); err != nil {
		return err
	}
	if err := c.checkCount(); err != nil {
		return err
	}
	// A log outlives a run that kept nothing else. Whoever names its id again
	// would have the log of somebody else.
	_, known := c.cache.get(run.Spec.ID)
	if _, err := os.Lstat(c.logDir(run.Spec.ID)); known || !errors.Is(err, fs.ErrNotExist) {
		return api.Failure(api.CodeConflict, "leave the id away, and cloved makes one", "the id %s has been used", run.Spec.ID)
	}
	_, err := c.records.enqueue(run)
	return c.mask(err)
}

// mask hides from a user whose run it is that has a name.
func (c *call) mask(err error) error {
	if err == nil || c.peer.root() || agent.KindOf(err) != agent.KindConflict {
		return err
	}
	return api.Failure(api.CodeConflict, "choose another --name", "the name is taken")
}

// result is the run as it is now.
func (c *call) result(id agent.ID) (any, error) {
	if err := c.cache.refresh(); err != nil {
		return nil, err
	}
	run, found := c.cache.get(id)
	if !found {
		return nil, api.Failure(api.CodeNotFound, "", "the run is gone")
	}
	return c.show(run), nil
}

func (c *call) show(run agent.Run) api.RunResult {
	result := api.RunResult{Run: scheduler.WithNext(run.WithoutSecrets())}
	if run.State == agent.StateQueued {
		result.Reason, _ = c.reconciler.reason(run.Spec.ID)
	}
	return result
}

// hold keeps what the caller called the run from meaning another one, or none,
// until release. It fails where that has happened already.
func (c *call) hold(ref string) (release func(), err error) {
	c.reconciler.names.RLock()
	if err = c.cache.refresh(); err == nil {
		var run agent.Run
		if run, err = c.cache.resolve(ref, c.peer.sees); err == nil && run.Spec.ID == c.run.Spec.ID {
			return c.reconciler.names.RUnlock, nil
		}
	}
	c.reconciler.names.RUnlock()
	if err == nil {
		err = api.Failure(api.CodeNotFound, "clove ps -a lists the runs", "%q means another run by now", ref)
	}
	return nil, err
}

// get shows the run as it was when the caller's word meant it: a moment later
// it may have another name.
func get(c *call, _ api.RunParams) (any, error) { return c.show(c.run), nil }

// wait answers when the run has ended for good.
func wait(c *call, _ api.RunParams) (any, error) {
	last := c.run
	run, found, err := c.cache.until(c, c.run.Spec.ID, func(run agent.Run, found bool) bool {
		if found {
			last = run
		}
		return !found || run.State == agent.StateEnded && !scheduler.StartsAgain(run)
	})
	switch {
	case err != nil:
		return nil, err
	case found:
		return api.WaitResult{Record: *run.Record}, nil
	}
	// With --rm the record goes with the run; what happened says how it ended.
	if record, known := c.cache.epitaph(last); known {
		return api.WaitResult{Record: record}, nil
	}
	return nil, api.Failure(api.CodeNotFound, "", "the run was removed")
}

// rename gives a run another name, unless its start has begun.
func rename(c *call, p api.RenameParams) (any, error) {
	r := c.reconciler
	r.names.Lock()
	defer r.names.Unlock()
	if err := c.cache.refresh(); err != nil {
		return nil, err
	}
	run, err := c.cache.resolve(p.Run, c.peer.sees)
	switch {
	case err != nil:
		return nil, err
	case r.at(run.Spec.ID):
		return nil, api.Failure(api.CodeConflict, "wait for its end", "%s is being started, and its supervisor knows it by its name", run.Spec.Name)
	}
	if _, err := c.comesAfter(p.Name, run.Spec.After); agent.KindOf(err) == agent.KindInvalid {
		return nil, err
	}
	if run, err = c.records.rename(run.Spec.ID, p.Name); err != nil {
		return nil, c.mask(err)
	}
	return c.show(run), nil
}
