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
func (k *reconciler) watch(ctx context.Context, runs []agent.Run) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, run := range runs {
		if run.Lease == nil || k.watched[run.Spec.ID] {
			continue
		}
		k.watched[run.Spec.ID] = true
		k.all.Go(func() {
			k.awaitDeath(ctx, run)
			k.mu.Lock()
			delete(k.watched, run.Spec.ID)
			k.mu.Unlock()
			k.nudge()
		})
	}
}

// awaitDeath returns when the run is over, buried where its supervisor could
// not end it, or when ctx ends.
func (k *reconciler) awaitDeath(ctx context.Context, run agent.Run) {
	if process, err := pidfd.Open(run.Lease.SupervisorPID); err == nil {
		defer process.Close()
		// The pid may be another's by now, but not while the run's lock is held:
		// then it was the supervisor's when the process was opened.
		if k.sandboxes.Supervised(run.Spec.ID) && !process.Wait(ctx) {
			return
		}
	}
	if ctx.Err() != nil || k.cache.refresh() != nil {
		return
	}
	if now, found := k.cache.get(run.Spec.ID); !found || now.Lease == nil {
		return // it came to its own end
	}
	// gofail: var deathSeen string
	// failpoint(deathSeen, "")

	k.clean()
	if k.cache.refresh() == nil {
		if now, found := k.cache.get(run.Spec.ID); !found || now.Lease == nil {
			return
		}
	}
	// It could not be buried, or only its own supervisor sees the process that
	// holds its lock: look again later.
	select {
	case <-ctx.Done():
	case <-time.After(k.retry):
	}
}

// clean removes what dead supervisors left, and logs it.
func (k *reconciler) clean() {
	buried, err := k.sandboxes.Clean()
	for _, problem := range buried {
		k.log.Warn("cleaned up", "kind", problem.Kind, "subject", problem.Subject, "what", problem.Message)
	}
	if k.cleaning.worth(err, time.Now()) {
		k.log.Error("cannot clean up", "error", err)
	}
}

// cleanPatience is how long callers wait for a cloved that cleans up first. A process that
// the kernel cannot kill holds the rest of it up for much longer.
const cleanPatience = time.Second

// cleanFirst cleans up before anything is started or answered, and where that takes long it
// lets the rest of it go on beside.
func (k *reconciler) cleanFirst() {
	done := make(chan struct{})
	k.all.Go(func() { k.clean(); close(done) })
	select {
	case <-done:
	case <-time.After(cleanPatience):
		k.log.Warn("cleaning up takes long; cloved serves meanwhile")
	}
}
