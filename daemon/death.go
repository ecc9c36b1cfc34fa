package daemon

import (
	"context"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/internal/pidfd"
)

// watch waits for the end of each live run's supervisor, whoever started it:
// one that dies leaves an agent that must be buried, and nobody else would
// notice before the next clove comes.
func (r *reconciler) watch(ctx context.Context, runs []agent.Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, run := range runs {
		if run.Lease == nil || r.watched[run.Spec.ID] {
			continue
		}
		r.watched[run.Spec.ID] = true
		r.all.Go(func() {
			r.awaitDeath(ctx, run)
			r.mu.Lock()
			delete(r.watched, run.Spec.ID)
			r.mu.Unlock()
			r.nudge()
		})
	}
}

// awaitDeath returns when the run is over, buried where its supervisor could
// not end it, or when ctx ends.
func (r *reconciler) awaitDeath(ctx context.Context, run agent.Run) {
	if process, err := pidfd.Open(run.Lease.SupervisorPID); err == nil {
		defer process.Close()
		// The pid may be another's by now, but not while the run's lock is held:
		// then it was the supervisor's when the process was opened.
		if r.sandboxes.Supervised(run.Spec.ID) && !process.Wait(ctx) {
			return
		}
	}
	if ctx.Err() != nil || r.cache.refresh() != nil {
		return
	}
	if now, found := r.cache.get(run.Spec.ID); !found || now.Lease == nil {
		return // it came to its own end
	}
	// gofail: var deathSeen string
	// failpoint(deathSeen, "")

	r.clean()
	if r.cache.refresh() == nil {
		if now, found := r.cache.get(run.Spec.ID); !found || now.Lease == nil {
			return
		}
	}
	// It could not be buried, or only its own supervisor sees the process that
	// holds its lock: look again later.
	select {
	case <-ctx.Done():
	case <-time.After(r.retry):
	}
}

// clean removes what dead supervisors left, and logs it.
func (r *reconciler) clean() {
	buried, err := r.sandboxes.Clean()
	for _, problem := range buried {
		r.log.Warn("cleaned up", "kind", problem.Kind, "subject", problem.Subject, "what", problem.Message)
	}
	if r.cleaning.worth(err, time.Now()) {
		r.log.Error("cannot clean up", "error", err)
	}
}

// cleanPatience is how long callers wait for a cloved that cleans up first. A process that
// the kernel cannot kill holds the rest of it up for much longer.
const cleanPatience = time.Second

// cleanFirst cleans up before anything is started or answered, and where that takes long it
// lets the rest of it go on beside.
func (r *reconciler) cleanFirst() {
	done := make(chan struct{})
	r.all.Go(func() { r.clean(); close(done) })
	select {
	case <-done:
	case <-time.After(cleanPatience):
		r.log.Warn("cleaning up takes long; cloved serves meanwhile")
	}
}
