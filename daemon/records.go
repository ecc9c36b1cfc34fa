package daemon

import (
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/daemon/metrics"
	"clove.run/clove/store"
)

// storeTimeout bounds the wait for another process's transaction.
const storeTimeout = 30 * time.Second

// records is the store, opened for each use: foreground runs and supervisors
// need it too.
type records struct {
	path  string
	meter *metrics.Meter
}

// with runs one short use of the store.
func (r records) with(use func(*store.Store) error) error {
	s, err := store.Open(r.path, storeTimeout)
	if err == nil {
		err = use(s)
		if cerr := s.Close(); err == nil {
			err = cerr
		}
	}
	if storeFailed(err) {
		r.meter.StoreFailed()
	}
	return err
}

// change is with, for a use that writes.
func (r records) change(use func(*store.Store) error) error {
	began := time.Now()
	err := r.with(use)
	if err == nil {
		r.meter.Committed(time.Since(began))
	}
	return err
}

func (r records) enqueue(run agent.Run) (queued agent.Run, err error) {
	err = r.change(func(s *store.Store) error { queued, err = s.Enqueue(run); return err })
	return queued, err
}

func (r records) requeue(id agent.ID, change func(*agent.Run)) (queued agent.Run, err error) {
	err = r.change(func(s *store.Store) error {
		queued, err = s.Requeue(id, func(run *agent.Run) {
			run.Spec.Detached, run.Spec.Foreground = true, false // cloved supervises it from now on, also if it ran in the foreground before
			change(run)
		})
		return err
	})
	return queued, err
}

func (r records) amend(id agent.ID, what agent.RunEventKind, detail string, change func(*agent.Run)) (run agent.Run, err error) {
	err = r.change(func(s *store.Store) error { run, err = s.Amend(id, what, detail, change); return err })
	return run, err
}

func (r records) rename(id agent.ID, name string) (run agent.Run, err error) {
	err = r.change(func(s *store.Store) error { run, err = s.Rename(id, name); return err })
	return run, err
}

// storeFailed reports whether an error is the store's own, and not its answer.
func storeFailed(err error) bool {
	switch agent.KindOf(err) {
	case agent.KindNotFound, agent.KindConflict, agent.KindInvalid:
		return false
	}
	return err != nil && api.ErrorOf(err).Code != api.CodeCancelled
}
