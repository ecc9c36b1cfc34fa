package runtime

import (
	"os"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/store"
)

// Check reports the spools of runs that have started, and gc removes them. An old spool without a run is a
// note, and stays. The controls are those of a run that is queued and of a copy that is being made.
func TestSpoolsOfStartedRuns(t *testing.T) {
	t.Parallel()
	r := testRuntime(t)
	over, _ := deadRun(t, r, nil)
	if err := r.withStore(func(s *store.Store) error {
		_, err := s.Apply(over.Spec.ID, agent.EventStarted, func(run *agent.Run) { run.Started = time.Now() })
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.GC(); err != nil {
		t.Fatal(err)
	}
	queued := testSpec()
	queued.Name = "queued"
	if err := r.withStore(func(s *store.Store) error { _, err := s.Enqueue(agent.Run{Spec: queued}); return err }); err != nil {
		t.Fatal(err)
	}
	spools, old := r.paths.Spools(), agent.NewID()
	for _, id := range []agent.ID{over.Spec.ID, queued.ID, old, agent.NewID()} {
		name, err := spools.New(id, 0)
		if err == nil {
			err = os.WriteFile(name, nil, 0o600)
		}
		if err == nil && id == old {
			err = os.Chtimes(name, time.Time{}, time.Now().Add(-2*unclaimedAge))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	problems, err := r.Check()
	if err != nil || len(problems) != 2 || problems[0].Subject != string(over.Spec.ID)+".0.tar" || problems[0].Note || problems[1].Subject != string(old)+".0.tar" || !problems[1].Note {
		t.Errorf("check: %+v, %v", problems, err)
	}
	if _, err := r.GC(); err != nil || len(spools.of(over.Spec.ID)) != 0 || len(entriesOf(string(spools))) != 3 {
		t.Errorf("gc: %v, %v", err, entriesOf(string(spools)))
	}
}
