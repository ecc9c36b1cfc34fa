package store

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"clove.run/clove/agent"
)

// secretOf returns a value for some run's environment, longer than a page.
func secretOf(name string) string { return strings.Repeat("secret of "+name+" ", 1000) }

func withSecret(name string) agent.Run {
	run := newRun(name)
	run.Spec.Env = []string{"TOKEN=" + secretOf(name)}
	return run
}

// Removed values are not in the file any more, and others are.
func TestRemoveErases(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "clove.db")
	s, err := Open(path, patience)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var ids []agent.ID
	for _, name := range []string{"gone", "stays", "gone-too"} {
		run, err := s.Begin(withSecret(name))
		if err == nil {
			run, err = endRun(s, run.Spec)
		}
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, run.Spec.ID)
	}
	holds := func(name string) bool {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(text, []byte("secret of "+name+" "))
	}
	for _, name := range []string{"gone", "stays", "gone-too"} {
		if !holds(name) {
			t.Fatalf("the control: the file does not hold the secret of %s", name)
		}
	}
	for i, name := range map[int]string{0: "gone", 2: "gone-too"} {
		if err := s.Remove(ids[i]); err != nil || holds(name) {
			t.Errorf("%s was removed (%v), and the file still holds its secret: %v", name, err, holds(name))
		}
	}
	if kept, err := s.Get(string(ids[1])); err != nil || kept.Spec.Env[0] != "TOKEN="+secretOf("stays") {
		t.Errorf("what was not removed: %v", err)
	}
	if problems, err := s.Check(); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// A process that reads or writes while others remove finds an intact file.
func TestErasesBesideOthers(t *testing.T) {
	t.Parallel()
	s, err := Open(filepath.Join(t.TempDir(), "clove.db"), patience)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range 15 {
				name := fmt.Sprintf("w%d-%d", worker, i)
				run, err := s.Begin(withSecret(name))
				if err == nil {
					run, err = endRun(s, run.Spec)
				}
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := s.Get(name); err != nil || got.Spec.Env[0] != "TOKEN="+secretOf(name) {
					t.Errorf("%s reads otherwise: %v", name, err)
				}
				if err := s.Remove(run.Spec.ID); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if problems, err := s.Check(); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}
