package main

import (
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// Without an order, or with an invalid time, it says so and does nothing.
func TestSuperviseRefuses(t *testing.T) {
	for _, args := range [][]string{{"supervise", "now"}, {"supervise", "--end", "soon"}} {
		b := newBench(t)
		if status, stdout, stderr := b.clove(args...); status != exitFailed || stdout != "" || stderr == "" || b.paths != 0 {
			t.Errorf("%q: %d, %q, %q", args, status, stdout, stderr)
		}
	}
}

// Runs whose supervisor cannot be reached are not ended.
func TestEndAll(t *testing.T) {
	b := newBench(t)
	b.backend.runs = someRuns()
	b.backend.runs[0].Lease = &agent.Lease{}
	if status, stdout, stderr := b.clove("supervise", "--end", "1s", "--run-dir", t.TempDir()); status != 0 || stdout+stderr != "" {
		t.Errorf("%d, %q, %q", status, stdout, stderr)
	}
	b.backend.failure = &agent.Error{Message: "the store is away"}
	if status, _, stderr := b.clove("supervise", "--end", "1s"); status != exitFailed || !strings.Contains(stderr, "away") {
		t.Errorf("%d, %q", status, stderr)
	}
}
