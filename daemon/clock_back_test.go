package daemon

import (
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/daemon/supervisor"
	"clove.run/clove/scheduler"
	"clove.run/clove/store"
)

// If the clock is set back by a year, no run waits for a year.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	year := 365 * 24 * time.Hour
	// Queued at a time that is now in the future, to start two seconds after that.
	next := time.Now().UTC().Add(year)
	delayed := spec("delayed")
	delayed.Detached = true
	_, err := r.records.enqueue(agent.Run{Spec: delayed, Queue: agent.QueueState{Since: next, NotBefore: next.Add(2 * time.Second)}})
	must(t, err)
	// Ended at a time in that future, with a policy that starts it again.
	failed := spec("failed")
	failed.Detached, failed.Restart.Policy = true, agent.RestartAlways
	_, err = r.records.enqueue(agent.Run{Spec: failed})
	must(t, err)
	_, _, err = r.start(supervisor.Order{Spec: failed})
	must(t, err)
	must(t, r.records.with(func(s *store.Store) error {
		_, err := s.Finish(failed.ID, agent.EventRecorded, agent.Record{Version: agent.RecordVersion, ID: failed.ID, Name: failed.Name,
			Status: agent.StatusExited, ExitCode: 1, Ended: next}, nil)
		return err
	}))
	r.serve()
	for _, s := range []agent.Spec{delayed, failed} {
		run, _, err := r.d.cache.until(within(t), s.ID, func(run agent.Run, _ bool) bool {
			return run.State == agent.StateRunning || run.State == agent.StateQueued && !run.Queue.NotBefore.After(time.Now().Add(scheduler.MaxBackoff))
		})
		must(t, err)
		t.Logf("%s: %s, not before %s", s.Name, run.State, run.Queue.NotBefore)
	}
	_, _, err = r.d.cache.until(within(t), delayed.ID, func(run agent.Run, _ bool) bool { return run.State == agent.StateRunning })
	must(t, err)
}
