package main

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// Output that a full disk did not take is one line, and status 1 unless the agent's own is another.
// The record keeps the agent's.
func TestLostOutput(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	for own, want := range map[int]int{0: exitFailed, 3: 3} {
		b := newBench(t)
		b.backend.record = agent.Record{Status: agent.StatusExited, ExitCode: own}
		b.backend.during = func() {
			to := b.backend.streams.Display(full)
			for range 2 {
				if _, err := to.Write([]byte("x")); !errors.Is(err, unix.ENOSPC) {
					t.Error(err)
				}
			}
		}
		status, _, stderr := b.clove("run", "--", "true")
		if status != want || strings.Count(stderr, "output was lost: write /dev/full: no space left on device") != 1 {
			t.Errorf("%d: %d, %q", own, status, stderr)
		}
	}
	// The control: a reader that has gone loses nothing.
	b := newBench(t)
	b.backend.during = func() {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		if _, err := b.backend.streams.Display(w).Write([]byte("x")); !errors.Is(err, unix.EPIPE) {
			t.Error(err)
		}
		w.Close()
	}
	if status, _, stderr := b.clove("run", "--", "true"); status != 0 || strings.Contains(stderr, "lost") {
		t.Errorf("%d, %q", status, stderr)
	}
}
