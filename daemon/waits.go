package daemon

import (
	"context"

	"clove.run/clove/agent"
	"clove.run/clove/store"
)

// reason says why a run waits, and returns what will be closed when that may
// have changed.
func (r *reconciler) reason(id agent.ID) (string, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waiting[id].Reason, r.decided
}

// obstacle is reason for the caller of a start: one that passes in a moment is
// no reason to answer that the run waits.
func (r *reconciler) obstacle(id agent.ID) (string, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if wait := r.waiting[id]; !wait.Short() {
		return wait.Reason, r.decided
	}
	return "", r.decided
}

// looks wakes the reconciler and waits for the end of a look, which may have begun before.
// It also returns for a look that failed: the caller then meets the same failure itself.
func (r *reconciler) looks(ctx context.Context) error {
	r.mu.Lock()
	ended := r.ended
	r.mu.Unlock()
	r.nudge()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// decidedAnew waits for a look that has seen what is stored by now: the next to
// end may have begun before, the one behind it has not.
func (r *reconciler) decidedAnew(ctx context.Context) error {
	for range 2 {
		if err := r.looks(ctx); err != nil {
			return err
		}
	}
	return nil
}

// lookEnded reports the end of a look, whatever came of it.
func (r *reconciler) lookEnded() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.ended)
	r.ended = make(chan struct{})
}

// queue counts the runs that wait by the kind of wait, and reports whether cloved is
// drained: for the metrics and clove debug.
func (r *reconciler) queue() (waiting map[string]int, draining bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting = map[string]int{}
	for _, wait := range r.waiting {
		waiting[wait.For]++
	}
	return waiting, r.draining
}

// drain holds starts back, or lets them go on. A later cloved keeps to it: it is stored
// before it holds here, so that no answer promises a drain that a crash forgets.
func (r *reconciler) drain(on bool) error {
	if err := r.records.change(func(s *store.Store) error { return s.SetDrained(on) }); err != nil {
		return err
	}
	r.mu.Lock()
	r.draining = on
	r.mu.Unlock()
	r.nudge()
	return nil
}

// recall reads whether an earlier cloved was drained.
func (r *reconciler) recall() error {
	return r.records.with(func(s *store.Store) (err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.draining, err = s.Drained()
		return err
	})
}

// drained reports whether starts are held back, by this cloved or one before it.
func (r *reconciler) drained() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.draining
}
