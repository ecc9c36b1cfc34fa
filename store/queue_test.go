package store

import (
	"testing"

	"clove.run/clove/agent"
)

func detached(name string) agent.Run {
	run := newRun(name)
	run.Spec.Detached = true
	return run
}

// A run that was ended or removed in the queue does not begin: it would be a new run without
// an owner, and the caller who removed it was answered that it is gone.
func TestWhatLeftTheQueueDoesNotBegin(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	for name, leave := range map[string]func(agent.Run) error{
		"ended": func(run agent.Run) error {
			_, err := s.Finish(run.Spec.ID, agent.EventRecorded, recordOf(run.Spec), nil)
			return err
		},
		"removed": func(run agent.Run) error {
			if _, err := s.Finish(run.Spec.ID, agent.EventRecorded, recordOf(run.Spec), nil); err != nil {
				return err
			}
			return s.Remove(run.Spec.ID)
		},
	} {
		run, err := s.Enqueue(detached(name))
		must(t, err)
		must(t, leave(run))
		if _, err := s.Begin(agent.Run{Spec: run.Spec, Lease: &agent.Lease{}}); agent.KindOf(err) != agent.KindConflict {
			t.Errorf("%s: %v", name, err)
		}
	}
	waiting, err := s.Enqueue(detached("waiting"))
	must(t, err)
	_, err = s.Begin(agent.Run{Spec: waiting.Spec, Lease: &agent.Lease{}})
	must(t, err)
}

// The supervisor of a live run could not store its end under another name.
func TestRenameRefusesTheLive(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	live, err := s.Begin(newRun("live"))
	must(t, err)
	if _, err := s.Rename(live.Spec.ID, "other"); agent.KindOf(err) != agent.KindConflict {
		t.Errorf("%v", err)
	}
	_, err = s.Finish(live.Spec.ID, agent.EventRecorded, recordOf(live.Spec), nil)
	must(t, err)
	_, err = s.Rename(live.Spec.ID, "other")
	must(t, err)
}
