package runtime

import (
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/store"
)

// Panic ends every agent of the installation at once, and lets nothing start until
// ClearPanic. It returns the runs that lived. Their records say policy-kill.
func (r *Runtime) Panic(reason string) (ended []agent.Run, err error) {
	err = r.withStore(func(s *store.Store) error {
		if err := s.SetPanic(&store.Panic{Reason: reason, Time: time.Now().UTC()}); err != nil {
			return err
		}
		// After the panic is in force: a run that is not in this list cannot register any more.
		ended, err = s.Live(func(agent.ID) bool { return true })
		return err
	})
	var all sync.WaitGroup
	for _, run := range ended {
		if run.Lease != nil {
			all.Go(func() { killInside(run.Lease.Cgroups) })
		}
	}
	all.Wait()
	return ended, err
}

// ClearPanic lets runs start again.
func (r *Runtime) ClearPanic() error {
	return r.withStore(func(s *store.Store) error { return s.SetPanic(nil) })
}

// panicked changes the record of an agent that a panic killed: only a panic kills the whole
// cgroup from outside and leaves no cause.
func (r *site) panicked(record *agent.Record) {
	if record.Status != agent.StatusKilled && (record.Signal == nil || *record.Signal != "SIGKILL") {
		return
	}
	_ = r.withStore(func(s *store.Store) error {
		p, err := s.Panic()
		if err == nil && p != nil && p.Time.Before(record.Ended) {
			record.Status, record.ExitCode = agent.StatusPolicyKill, agent.ExitKilled
			record.Error = &agent.Failure{Step: "panic", Message: p.Reason}
		}
		return err // a store that cannot be read leaves the record as it is; the next step reports it
	})
}
