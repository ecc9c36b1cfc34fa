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

// BenchmarkLook measures the look with which cloved's clean-up begins: ten thousand ended
// runs, none of which has anything left on the host.
func BenchmarkLook(b *testing.B) {
	dir, err := os.MkdirTemp("/dev/shm", "clove-bench-") // on a disk, the disk would be measured
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	r := &Runtime{reaper: reaper{site: site{paths: Paths{State: dir, Run: filepath.Join(dir, "run")}}}}
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

// livedOnce stores one run from its beginning to its end.
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
