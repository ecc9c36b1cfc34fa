package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/store"
)

// The invented past consists of runs that a cloved could have stored.
func TestRemember(t *testing.T) {
	d := (&bench{scratch: t.TempDir()}).newCloved("past")
	if err := d.remember(12); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(filepath.Join(d.state, "clove.db"), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	runs, err := s.List()
	if err != nil || len(runs) != 12 || runs[0].State != agent.StateEnded {
		t.Errorf("%d runs, %v", len(runs), err)
	}
	if problems, err := s.Check(); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

func TestResidentKiB(t *testing.T) {
	values, err := residentKiB([]int{os.Getpid()}, "Pss:")
	if err != nil || len(values) != 1 || values[0] < 100 {
		t.Errorf("%v, %v", values, err)
	}
	if _, err := residentKiB([]int{0}, "Pss:"); err == nil {
		t.Error("a process that is none has a size")
	}
}
