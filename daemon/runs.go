package daemon

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/daemon/supervisor"
	"clove.run/clove/daemon/traces"
	"clove.run/clove/runtime"
	"clove.run/clove/scheduler"
	"clove.run/clove/store"
)

// runs serves the methods that store, start, end and forget runs.
type runs struct {
	cache       *cache
	records     records
	reconciler  *reconciler
	sandboxes   sandboxes
	limits      admissionRules
	supervisors supervisors
	paths       runtime.Paths
	admission   *sync.Mutex // from counting a user's runs until the next one is stored
	tracer      *traces.Tracer
	log         *slog.Logger
	asking      func(agent.ID) (string, error) // what a run asks people; nil: nothing is served yet
}

func (r runs) methods() []handler {
	return []handler{
		on(methods.RunStart, r.start),
		onLater(methods.RunList, r.list),
		on(methods.RunGet, r.get),
		on(methods.RunWait, r.wait),
		on(methods.RunRemove, r.remove),
		on(methods.RunRename, r.rename),
		on(methods.RunPrune, r.prune),
		on(methods.RunStop, r.stop),
		on(methods.RunSignal, r.signal),
		on(methods.RunRestart, r.restart),
	}
}

// start stores a run, and answers when it executes or waits for more than other starts.
func (r runs) start(c *request, p api.StartParams) (api.RunResult, error) {
	spec := p.Spec
	if spec.ID == "" {
		spec.ID = agent.NewID()
	}
	// The caller cannot change this: cloved starts each run under a supervisor of its own.
	spec.Detached = true
	if err := r.cache.refresh(); err != nil { // a run that it names in after may be new
		return api.RunResult{}, err
	}
	if err := r.limits.checkSpec(c, spec); err != nil {
		return api.RunResult{}, err
	}
	if err := r.limits.checkUser(c, spec); err != nil {
		return api.RunResult{}, err
	}
	spec, err := r.limits.config().labelled(spec)
	if err != nil {
		return api.RunResult{}, err
	}
	if spec.After, err = r.limits.comesAfter(c, spec.After); err != nil {
		return api.RunResult{}, err
	}
	rlimits, err := c.peer.rlimitsFor(spec)
	if err != nil {
		return api.RunResult{}, err
	}
	now := time.Now().UTC()
	run := agent.Run{Spec: spec, Owner: c.peer.owner, CallerRlimits: rlimits, Created: now, Queue: agent.NewQueueState(spec, now)}
	if err := r.limits.noCircle(run.Name(), run.AfterNames()); err != nil {
		return api.RunResult{}, err
	}
	if p.DelayNS > 0 && spec.Foreground {
		return api.RunResult{}, api.Failure(api.CodeParams, "omit one of them", "a run in the foreground starts at once, and there is a delay")
	}
	if p.DelayNS > 0 {
		run.Queue.NotBefore = now.Add(time.Duration(p.DelayNS))
	}
	r.tracer.About(c, run)
	run.Queue.Trace = r.tracer.Carry(c)
	// All of this comes before the run is stored: the reconciler may start it in the same
	// moment, and its decision and its answer must find this caller.
	_, decided := r.reconciler.reason(spec.ID)
	answer := r.reconciler.expect(spec.ID)
	defer r.reconciler.forget(spec.ID, answer)
	if p.Size != nil {
		defer r.reconciler.seat(spec.ID, p.Size)()
	}
	// gofail: var startAsked string
	// if err := failpoint(startAsked, ""); err != nil { return api.RunResult{}, err }

	if err := r.admit(c, run); err != nil {
		return api.RunResult{}, err
	}
	// gofail: var startQueued string
	// if err := failpoint(startQueued, ""); err != nil { return api.RunResult{}, err }

	c.made = spec.ID
	r.log.Info("queued", "run", spec.Name, "id", spec.ID, "peer", c.peer.String())
	r.reconciler.nudge()
	return r.firstTurn(c, spec, answer, decided)
}

// firstTurn answers for a run that was just queued. Another request may end it before
// the reconciler starts it: then no start reports an answer.
func (r runs) firstTurn(c *request, spec agent.Spec, answer <-chan supervisor.Answer, decided <-chan struct{}) (api.RunResult, error) {
	for {
		select {
		case a := <-answer:
			if a.Error != nil {
				return api.RunResult{}, a.Error
			}
			return r.result(spec.ID)
		case <-decided:
			var reason string
			if reason, decided = r.reconciler.obstacle(spec.ID); reason != "" {
				if !spec.Foreground {
					return r.result(spec.ID)
				}
				if err := r.withdraw(spec, reason); agent.KindOf(err) != agent.KindConflict {
					return api.RunResult{}, err
				} // its start has begun
			}
			if err := r.cache.refresh(); err != nil {
				return api.RunResult{}, err
			}
			run, found := r.cache.get(spec.ID)
			// Checked last: a start that ended the run has reported its answer by then.
			if !r.reconciler.at(spec.ID) && len(answer) == 0 && (!found || run.State == agent.StateEnded) {
				return api.RunResult{}, store.Unqueued(spec.Name)
			}
		// The run stays: a detached one needs no caller, and one in the foreground is ended
		// by its supervisor when its caller does not come.
		case <-c.Done():
			return api.RunResult{}, c.Err()
		}
	}
}

// withdraw takes a foreground run that would have to wait out of the queue again: its
// caller waits for output, not for a place.
func (r runs) withdraw(spec agent.Spec, reason string) error {
	if err := r.reconciler.dequeue(spec.ID, queued); err != nil {
		return err
	}
	// A foreground run that was refused leaves neither a record nor its name.
	if err := r.sandboxes.Remove(string(spec.ID)); err != nil && agent.KindOf(err) != agent.KindNotFound {
		return err
	}
	return api.Failure(api.CodeBusy, "with -d it waits in the queue", "%s would have to wait: %s", spec.Name, reason)
}

// admit stores a run within its owner's limit of runs, under an id that is new.
func (r runs) admit(c *request, run agent.Run) error {
	r.admission.Lock()
	defer r.admission.Unlock()
	if err := r.cache.refresh(); err != nil {
		return err
	}
	if err := r.limits.checkCount(c, run.Spec); err != nil {
		return err
	}
	// The log of a run can outlive its record. A caller that chooses the same id could
	// read the log of another user.
	_, known := r.cache.get(run.Spec.ID)
	if _, err := os.Lstat(r.paths.Log(run.Spec.ID)); known || !errors.Is(err, fs.ErrNotExist) {
		return api.Failure(api.CodeConflict, "omit the id, and cloved makes one", "the id %s has been used", run.Spec.ID)
	}
	_, err := r.records.enqueue(run)
	return err
}

// result is the run as it is now.
func (r runs) result(id agent.ID) (api.RunResult, error) {
	if err := r.cache.refresh(); err != nil {
		return api.RunResult{}, err
	}
	run, found := r.cache.get(id)
	if !found {
		return api.RunResult{}, api.Failure(api.CodeNotFound, "", "the run is gone")
	}
	return r.show(run), nil
}

// show is a run as its owner may see it, with why it waits.
func (r runs) show(run agent.Run) api.RunResult {
	return api.RunResult{Run: scheduler.WithNext(run.WithoutSecrets()), Reason: r.waitsFor(&run)}
}

// waitsFor says what a run waits for: its start, or people; empty: nothing. What people are asked is left out where it cannot
// be read.
func (r runs) waitsFor(run *agent.Run) (reason string) {
	switch {
	case run.State == agent.StateQueued:
		reason, _ = r.reconciler.reason(run.Spec.ID)
	case run.State == agent.StateRunning && len(run.Spec.Kernel.Asks) > 0 && r.asking != nil:
		reason, _ = r.asking(run.Spec.ID)
	}
	return reason
}

// hold prevents renames until release, so that ref goes on meaning the call's run. It
// fails if ref means another run, or none, by now.
func (r runs) hold(c *request, ref string) (release func(), err error) {
	r.reconciler.names.RLock()
	if err = r.cache.refresh(); err == nil {
		var run agent.Run
		if run, err = r.cache.resolve(ref, c.peer.principal); err == nil && run.Spec.ID == c.run.Spec.ID {
			return r.reconciler.names.RUnlock, nil
		}
	}
	r.reconciler.names.RUnlock()
	if err == nil {
		err = api.Failure(api.CodeNotFound, "clove ps -a lists the runs", "%q is the name of another run now", ref)
	}
	return nil, err
}

// get shows the run as it was when the access rule resolved its name: a moment later it
// may have another one.
func (r runs) get(c *request, _ api.RunParams) (api.RunResult, error) { return r.show(c.run), nil }

// wait answers when the run has ended for good.
func (r runs) wait(c *request, _ api.RunParams) (api.WaitResult, error) {
	// The run as it was last seen: with --rm it is gone at the end, and its start is needed
	// for the record.
	last := c.run
	run, found, err := r.cache.until(c, c.run.Spec.ID, func(run agent.Run, found bool) bool {
		if found {
			last = run
		}
		return !found || run.State == agent.StateEnded && !scheduler.StartsAgain(run)
	})
	switch {
	case err != nil:
		return api.WaitResult{}, err
	case found:
		return api.WaitResult{Record: *run.Record}, nil
	}
	// With --rm the record is removed with the run, and only its last event is left.
	if record, known := r.cache.lastRecord(last); known {
		return api.WaitResult{Record: record}, nil
	}
	return api.WaitResult{}, api.Failure(api.CodeNotFound, "", "the run was removed")
}

// rename gives a run another name, unless its start has begun.
func (r runs) rename(c *request, p api.RenameParams) (api.RunResult, error) {
	r.reconciler.names.Lock()
	defer r.reconciler.names.Unlock()
	if err := r.cache.refresh(); err != nil {
		return api.RunResult{}, err
	}
	run, err := r.cache.resolve(p.Run, c.peer.principal)
	switch {
	case err != nil:
		return api.RunResult{}, err
	case r.reconciler.at(run.Spec.ID):
		return api.RunResult{}, api.Failure(api.CodeConflict, "wait for its end", "%s is being started, and cannot be renamed until it has ended", run.Spec.Name)
	}
	// Runs come after names, so a new name can close a circle.
	if err := r.limits.noCircle(agent.RunName{UID: run.Owner.UID, Name: p.Name}, run.AfterNames()); err != nil {
		return api.RunResult{}, err
	}
	if run, err = r.records.rename(run.Spec.ID, p.Name); err != nil {
		return api.RunResult{}, err
	}
	if err := r.paths.Renamed(run); err != nil {
		r.log.Warn("the files of a run are described under its former name", "run", run.Spec.Name, "error", err)
	}
	return r.show(run), nil
}
