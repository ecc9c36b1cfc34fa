package runtime

import (
	"os"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/store"
)

// A layer can be read after the agent's end and while the run waits for its next start. The
// control is a run that executes: its image is in use.
func TestKeptLayerIsOpenedAtRest(t *testing.T) {
	t.Parallel()
	r := testRuntime(t)
	run, _ := deadRun(t, r, nil)
	apply(t, r, run, agent.EventStarted)
	image := r.paths.layer(run.Spec.ID)
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	open := func() error {
		file, err := r.openKept(agent.Run{Spec: run.Spec, Layer: image})
		if err == nil {
			file.Close()
		}
		return err
	}
	if err := open(); agent.KindOf(err) != agent.KindConflict {
		t.Errorf("control: while it executes: %v", err)
	}
	if err := r.conclude(run, agent.EventLost, r.lostRecord(run, &runDirectory{path: t.TempDir()}), true); err != nil {
		t.Fatal(err)
	}
	if err := open(); err != nil {
		t.Errorf("after its end: %v", err)
	}
	err := r.withStore(func(s *store.Store) error { _, err := s.Requeue(run.Spec.ID, nil); return err })
	if err != nil {
		t.Fatal(err)
	}
	if err := open(); err != nil {
		t.Errorf("between two starts: %v", err)
	}
}
