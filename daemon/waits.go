package daemon

import (
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

// queue says how many wait for what, and whether cloved is drained.
func (r *reconciler) queue() (waiting map[string]int, draining bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting = map[string]int{}
	for _, wait := range r.waiting {
		waiting[wait.For]++
	}
	return waiting, r.draining
}

// drain holds starts back, or lets them go on. A later cloved keeps to it.
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
