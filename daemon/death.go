package daemon

import (
	"context"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/internal/pidfd"
)

// watch waits for the end of each live run's supervisor, also of runs that cloved did not start. One
// that dies leaves an agent to clean up after, and nothing else would notice that
// before the next start of clove.
func (r *reconciler) watch(ctx context.Context, runs []agent.Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, run := range runs {
		if run.Lease == nil || r.watched[run.Spec.ID] {
			continue
		}
		// One goroutine for each run, however often the reconciler looks.
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

// awaitDeath returns when the run has ended, or when ctx ends. Where its
// supervisor died, it has been cleaned up.
func (r *reconciler) awaitDeath(ctx context.Context, run agent.Run) {
	if process, err := pidfd.Open(run.Lease.SupervisorPID); err == nil {
		defer process.Close()
		// The pid may be another process's by now. While the run's lock is held it is
		// not: the supervisor lives, so the process that was opened is the supervisor.
		if r.sandboxes.Supervised(run.Spec.ID) && !process.Wait(ctx) {
			return
		}
	}
	// Where the store fails, the nudge behind this brings another look, which watches
	// again.
	if ctx.Err() != nil || r.cache.refresh() != nil {
		return
	}
	if now, found := r.cache.get(run.Spec.ID); !found || now.Lease == nil {
		if run.Spec.Kernel.HasCommands() {
			r.clean() // it may have been killed after that, beside a command
		}
		return // its supervisor stored its end
	}
	// gofail: var deathSeen string
	// failpoint(deathSeen, "")

	r.clean()
	if r.cache.refresh() == nil {
		if now, found := r.cache.get(run.Spec.ID); !found || now.Lease == nil {
			return
		}
	}
	// It could not be cleaned up, or a process that cloved cannot see holds its
	// lock: look again later. Not at once: the nudge behind this would bring the same look,
	// and the same failure, without a pause.
	select {
	case <-ctx.Done():
	case <-time.After(r.retry):
	}
}

// clean removes what dead supervisors left, and logs it.
func (r *reconciler) clean() {
	removed, err := r.sandboxes.Clean()
	for _, problem := range removed {
		r.log.Warn("cleaned up", "kind", problem.Kind, "subject", problem.Subject, "what", problem.Message)
	}
	if r.cleaning.worth(err, time.Now()) {
		r.log.Error("cannot clean up", "error", err)
	}
}

// dropLost removes layers and logs without a record that are older than the configuration keeps
// them.
func (d *Daemon) dropLost(now time.Time) {
	days := d.config().LostDays
	if days == 0 {
		return
	}
	removed, err := d.sandboxes.RemoveLost(now.AddDate(0, 0, -days))
	for _, p := range removed {
		d.log.Warn("removed what had no record", "what", p.Subject, "lost_days", days)
	}
	if d.dropping.worth(err, now) {
		d.log.Error("cannot remove what has no record", "error", err)
	}
}

// cleanPatience is how long callers wait for a cloved that cleans up first. A
// process in uninterruptible sleep, which not even SIGKILL ends, may hold the
// rest of it up for much longer.
const cleanPatience = time.Second

// cleanFirst cleans up before anything is started or answered. Where that takes
// long, the rest of it goes on beside.
func (r *reconciler) cleanFirst() {
	done := make(chan struct{})
	r.all.Go(func() { r.clean(); close(done) })
	select {
	case <-done:
	case <-time.After(cleanPatience):
		r.log.Warn("cleaning up takes long; cloved serves meanwhile")
	}
}
