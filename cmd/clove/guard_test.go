package main

import "testing"

// It is not a command for people: with arguments it says so and does nothing.
func TestGuardRefuses(t *testing.T) {
	b := newBench(t)
	if status, stdout, stderr := b.clove("guard", "now"); status != exitFailed || stdout != "" || stderr == "" || b.paths != 0 {
		t.Errorf("%d, %q, %q", status, stdout, stderr)
	}
}
