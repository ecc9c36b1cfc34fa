package runtime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
	"clove.run/clove/store"
)

// BenchmarkLook is what cloved's clean-up at its start looks at: ten thousand
// ended runs, of which nothing is on the host.
func BenchmarkLook(b *testing.B) {
	dir, err := os.MkdirTemp("/dev/shm", "clove-bench-") // the disk would be what is measured
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	r := &Runtime{paths: Paths{State: dir, Run: filepath.Join(dir, "run")}}
	s, err := store.Open(r.paths.database(), time.Minute)
	if err != nil {
		b.Fatal(err)
	}
	for i := range 10_000 {
		if err := livedOnce(s, fmt.Sprintf("past-%d", i)); err != nil {
			b.Fatal(errors.Join(err, s.Close()))
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := r.look(); err != nil {
			b.Fatal(err)
		}
	}
}

// livedOnce is one run from its beginning to its end, as far as the store knows.
func livedOnce(s *store.Store, name string) error {
	spec := policies.Standard()
	spec.ID, spec.Name, spec.Detached = agent.NewID(), name, true
	spec.Command = []string{"/bin/sleep", "3600"}
	if _, err := s.Enqueue(agent.Run{Spec: spec}); err != nil {
		return err
	}
	_, err := s.Finish(spec.ID, agent.EventRecorded, agent.Record{Version: agent.RecordVersion, ID: spec.ID, Name: name, Status: agent.StatusExited,
		Denials: []agent.Denial{}, Enforced: map[string]string{}, Unenforced: []string{}}, nil)
	return err
}
