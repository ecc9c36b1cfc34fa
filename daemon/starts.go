package daemon

import (
	"context"
	"slices"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/daemon/supervisor"
	"clove.run/clove/scheduler"
)

// begin starts one run and answers the callers that wait for it. It is one goroutine for
// each start, and the only one that takes the run out of starting.
func (r *reconciler) begin(run agent.Run) {
	began := time.Now()
	// gofail: var beginTurn string
	// failpoint(beginTurn, "")

	answer, gone := r.attempt(run)
	r.tracer.Started(run, began, answer.Steps, failedStep(answer))
	queued := false
	if answer.Started {
		r.log.Info("started", "run", run.Spec.Name, "id", run.Spec.ID, "took", time.Since(began))
	} else {
		r.log.Warn("cannot start", "run", run.Spec.Name, "id", run.Spec.ID, "error", answer.Error)
		// In this order: a supervisor that still lives may write to the log, or store the
		// run's end.
		r.awaitEnd(gone)
		r.forgetLog(run.Spec.ID)
		queued = r.postpone(run.Spec.ID, answer.Error)
	}
	r.mu.Lock()
	delete(r.starting, run.Spec.ID)
	// Else the run is started again in a moment, and its callers wait for that.
	if !queued {
		for _, caller := range r.answers[run.Spec.ID] {
			caller <- answer // it is buffered
		}
		delete(r.answers, run.Spec.ID)
	}
	r.mu.Unlock()
	r.nudge()
}

// attempt has a supervisor start the run, and records a start that failed before there was
// one. gone is closed when the supervisor has ended. A start that failed later has its
// record from the supervisor; Refuse leaves such a run alone.
func (r *reconciler) attempt(run agent.Run) (answer supervisor.Answer, gone <-chan struct{}) {
	// The configuration may be another than when the run was asked for.
	err := r.admits(run)
	if err == nil {
		err = r.memory.hold() // before each start, which may make the cgroup again
	}
	metered := false
	if err == nil {
		metered, err = r.metered(run)
	}
	var input []byte
	content := ""
	if err == nil {
		input, content, err = r.paths.Spools().Given(run.Spec.ID)
	}
	if err == nil {
		answer, gone, err = r.starter.start(supervisor.Order{Spec: run.Spec, Owner: run.Owner, Rlimits: run.CallerRlimits, Size: r.window(run.Spec.ID), Socket: r.socket(), Metered: metered, Input: input, Content: content,
			LogDir: r.paths.Log(run.Spec.ID), LogCapBytes: r.config().LogCapBytes()})
	}
	if err == nil {
		return answer, gone
	}
	if rerr := r.sandboxes.Refuse(run.Spec.ID, err); r.looking.worth(rerr, time.Now()) {
		r.log.Error("cannot store the record of a run that was not started", "run", run.Spec.Name, "error", rerr)
	}
	return supervisor.Answer{Error: api.ErrorOf(err)}, gone
}

// postpone holds a run back whose start failed, if it is still queued: the failure could
// not be stored, and the run would be started again at once, without end. It reports whether
// the run is queued.
//
// The hold is in memory only: a new cloved tries each run once.
func (r *reconciler) postpone(id agent.ID, failure *api.Error) (queued bool) {
	if r.cache.refresh() == nil {
		if run, found := r.cache.get(id); !found || run.State != agent.StateQueued {
			r.mu.Lock()
			delete(r.held, id)
			r.mu.Unlock()
			return false
		}
	}
	reason := "it could not be started, and is tried again"
	if failure != nil {
		reason += ": " + failure.Message
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held[id] = scheduler.Hold{Until: time.Now().Add(r.retry), Reason: reason}
	return true
}

// forgetLog removes what a start made of the log of a run that was removed
// before it began.
func (r *reconciler) forgetLog(id agent.ID) {
	if r.cache.refresh() != nil {
		return // gc finds it
	}
	if _, found := r.cache.get(id); !found {
		if err := r.paths.RemoveLog(id); err != nil {
			r.log.Warn("cannot remove a log", "id", id, "error", err)
		}
	}
}

// named is a run that will start, with the name that it keeps. Later
// changes of it are read from the store by its supervisor.
func (r *reconciler) named(run agent.Run) agent.Run {
	r.names.RLock()
	defer r.names.RUnlock()
	if r.cache.refresh() == nil {
		if now, found := r.cache.get(run.Spec.ID); found {
			return now
		}
	}
	return run
}

// at reports whether the run is being started.
func (r *reconciler) at(id agent.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.starting[id]
}

// awaitStart waits until no start of the run goes on, or ctx ends.
func (r *reconciler) awaitStart(ctx context.Context, id agent.ID) {
	for {
		r.mu.Lock()
		goesOn, ended := r.starting[id], r.ended
		r.mu.Unlock()
		if !goesOn {
			return
		}
		select {
		case <-ended: // the end of a start brings a look
		case <-ctx.Done():
			return
		}
	}
}

// awaitEnd waits until a supervisor can change the store no more. One whose
// answer was lost may live as long as its agent: then the store has the run.
func (r *reconciler) awaitEnd(gone <-chan struct{}) {
	if gone == nil {
		return
	}
	select {
	case <-gone:
	case <-time.After(r.retry):
	}
}

// expect returns the channel on which the answer to a start will come. Any caller
// may name any id: a second one must not take the first one's answer.
func (r *reconciler) expect(id agent.ID) chan supervisor.Answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	answer := make(chan supervisor.Answer, 1)
	r.answers[id] = append(r.answers[id], answer)
	return answer
}

// forget takes back expect for a caller that has gone: its channel would be kept
// as long as its run waits.
func (r *reconciler) forget(id agent.ID, answer chan supervisor.Answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := slices.DeleteFunc(r.answers[id], func(a chan supervisor.Answer) bool { return a == answer })
	if r.answers[id] = left; len(left) == 0 {
		delete(r.answers, id)
	}
}

// seat gives the start of a foreground run its caller's window, until release.
func (r *reconciler) seat(id agent.ID, size *api.SessionSize) (release func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.windows[id] = size
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.windows, id)
	}
}

// window is the size of the terminal of the caller that waits for a foreground run; nil:
// none.
func (r *reconciler) window(id agent.ID) *api.SessionSize {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.windows[id]
}
