//go:build root

package cgroups

import (
	"os"
	"testing"

	"clove.run/clove/internal/testhost"
)

// TestAnticipateMovesNothing: the write names the cgroup in which the process already is.
func TestAnticipateMovesNothing(t *testing.T) {
	testhost.Root(t)
	before, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	h, err := Detect()
	if err != nil {
		t.Fatal(err)
	}
	if h.own == "" {
		t.Fatal("clove's own cgroup was not found")
	}
	h.Anticipate()
	after, err := os.ReadFile("/proc/self/cgroup")
	if err != nil || string(after) != string(before) {
		t.Errorf("moved, %v:\n%s\nto\n%s", err, before, after)
	}
}
