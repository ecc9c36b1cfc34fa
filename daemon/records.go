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

// with runs one short use of the store. Nothing slow belongs into use: every other process
// that needs the store waits meanwhile.
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

// change is with, for a use that writes. The time that it measures has the wait for the
// file in it, which is what a caller waits for.
func (r records) change(use func(*store.Store) error) error {
	began := time.Now()
	err := r.with(use)
	if err == nil {
		r.meter.Committed(time.Since(began))
	}
	return err
}

// enqueue stores a new run in the queue.
func (r records) enqueue(run agent.Run) (queued agent.Run, err error) {
	err = r.change(func(s *store.Store) error { queued, err = s.Enqueue(run); return err })
	return queued, err
}

// requeue queues an ended run again, also one that ran in the foreground, which is detached
// from then on.
func (r records) requeue(id agent.ID, change func(*agent.Run)) (queued agent.Run, err error) {
	err = r.change(func(s *store.Store) error {
		queued, err = s.Requeue(id, func(run *agent.Run) {
			run.Spec.Detached, run.Spec.Foreground = true, false
			change(run)
		})
		return err
	})
	return queued, err
}

// amend changes a run's fields and logs the event what, in one transaction.
func (r records) amend(id agent.ID, what agent.RunEventKind, detail string, change func(*agent.Run)) (run agent.Run, err error) {
	err = r.change(func(s *store.Store) error { run, err = s.Amend(id, what, detail, change); return err })
	return run, err
}

// rename gives a run another name. The caller holds reconciler.names.
func (r records) rename(id agent.ID, name string) (run agent.Run, err error) {
	err = r.change(func(s *store.Store) error { run, err = s.Rename(id, name); return err })
	return run, err
}

// storeFailed reports whether an error is the store's own, and not its answer. The metrics
// count only such errors.
func storeFailed(err error) bool {
	switch agent.KindOf(err) {
	case agent.KindNotFound, agent.KindConflict, agent.KindInvalid:
		return false
	}
	return err != nil && api.ErrorOf(err).Code != api.CodeCancelled
}
