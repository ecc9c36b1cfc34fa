//go:build root

package cgroups

import (
	"context"
	"os/exec"
	"slices"
	"testing"
)

// TestBelowEndsItsPartOnly: a process in a cgroup below the agent's counts as the agent's, and
// is ended without the others. The control is a process of the agent's own cgroup.
func TestBelowEndsItsPartOnly(t *testing.T) {
	g := realGroup(t)
	b, err := g.MakeBelow("session-1")
	if err != nil {
		t.Fatal(err)
	}
	control, part := joinCommand(t, g, exec.Command("sleep", "1000")), joinCommand(t, b.Group, exec.Command("sleep", "1000"))
	pids, err := g.Pids()
	if err != nil || !slices.Contains(pids, part.Process.Pid) || b.RemoveEmpty() {
		t.Errorf("the group has %v, %v", pids, err)
	}
	if err := b.Kill(context.Background()); err != nil {
		t.Fatal(err)
	}
	if pids, err := g.Pids(); err != nil || !slices.Equal(pids, []int{control.Process.Pid}) {
		t.Errorf("left: %v, %v", pids, err)
	}
	if err := b.Remove(context.Background()); err != nil || !b.RemoveEmpty() {
		t.Errorf("it is still there: %v", err)
	}
}
