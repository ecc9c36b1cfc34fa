package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/store"
)

func TestDaemonTable(t *testing.T) {
	text := table(&results{Daemon: []daemonFigure{
		{What: "run.list of 500 agents", Unit: "ms", Values: spread{P50: 1.25, P95: 2, P99: 3, Samples: 300}, Aim: 5},
		{What: "starts", Unit: "starts/s", Values: spread{P50: 42, P95: 42, P99: 42, Samples: 1}},
	}})
	for _, want := range []string{"run.list of 500 agents  ms        1.2   2.0  3.0  5\n", "starts                  starts/s  42.0  -    -    -\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the table lacks %q:\n%s", want, text)
		}
	}
}

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
