package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"clove.run/clove/agent"
)

// As many clove runs as a busy host starts at once: each gets the store, no record is lost,
// and no two live runs share an id range.
func TestTwoHundredProcesses(t *testing.T) {
	processes := 200
	if testing.Short() {
		processes = 24
	}
	path := tempFile(t)
	var children []*child
	for range processes {
		c := startChild(t, "live", path)
		c.line(t)
		children = append(children, c)
	}
	start := time.Now()
	begun := nextTurn(t, children)
	t.Logf("%d processes began in %v, the longest wait was %v", processes, time.Since(start), longest(begun))
	var ranges []int
	for _, a := range begun {
		ranges = append(ranges, a.Run.Lease.IDRange)
	}
	slices.Sort(ranges)
	for i, index := range ranges {
		if index != i {
			t.Fatalf("the leases are not the ranges 0 to %d: %v", processes-1, ranges)
		}
	}
	checkClean(t, path)

	start = time.Now()
	ended := nextTurn(t, children)
	t.Logf("%d processes ended in %v, the longest wait was %v", processes, time.Since(start), longest(ended))
	for _, c := range children {
		must(t, c.Wait())
	}
	all, err := open(t, path).List()
	must(t, err)
	if len(all) != processes {
		t.Errorf("%d runs are stored, want %d", len(all), processes)
	}
	for _, run := range all {
		if run.State != agent.StateEnded || run.Record == nil || run.Record.ID != run.Spec.ID {
			t.Errorf("run %s is %s with record %v", run.Spec.ID, run.State, run.Record)
		}
	}
}

// nextTurn lets all children continue at once and returns what each reports.
func nextTurn(t *testing.T, children []*child) []account {
	t.Helper()
	for _, c := range children {
		_, err := fmt.Fprintln(c.in)
		must(t, err)
	}
	var all []account
	for _, c := range children {
		var a account
		must(t, json.Unmarshal([]byte(c.line(t)), &a))
		all = append(all, a)
	}
	return all
}

func longest(all []account) (wait time.Duration) {
	for _, a := range all {
		wait = max(wait, a.Longest)
	}
	return wait
}

// After kill -9 at any moment, everything that the process reported as stored is stored, and
// the file is intact.
func TestKilledInTheMiddle(t *testing.T) {
	t.Parallel()
	path := tempFile(t)
	rounds := 10
	if testing.Short() {
		rounds = 4
	}
	for round := range rounds {
		storm := startChild(t, "storm", path)
		var ended []string
		for range 3 + round {
			ended = append(ended, storm.line(t))
		}
		must(t, storm.Process.Kill())
		storm.Wait()
		checkClean(t, path)
		s := open(t, path)
		for _, id := range ended {
			run, err := s.Get(id)
			must(t, err)
			if run.State != agent.StateEnded {
				t.Errorf("run %s was ended and is %s", id, run.State)
			}
		}
		must(t, s.Close())
	}
}

// Many processes open a path without a file: one of them makes the file, and none destroys
// what another began.
func TestCreatedByManyAtOnce(t *testing.T) {
	t.Parallel()
	path := tempFile(t)
	const processes = 8
	var children []*child
	for range processes {
		c := startChild(t, "live", path)
		c.line(t)
		children = append(children, c)
	}
	nextTurn(t, children)
	nextTurn(t, children)
	all, err := open(t, path).List()
	must(t, err)
	if len(all) != processes {
		t.Errorf("%d runs are stored, want %d", len(all), processes)
	}
}
