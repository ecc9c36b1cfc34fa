//go:build root

package cgroups

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/testhost"
)

// commandsOf makes the cgroups of a command of the run, on a host that is prepared.
func commandsOf(t *testing.T, h *Host, uid uint32, name string) *Commands {
	t.Helper()
	if err := h.Prepare(); err != nil {
		t.Fatal(err)
	}
	c, err := h.MakeCommands(uid, name, 32<<20, 6)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.End(context.Background()) })
	return c
}

// The commands of one user share their bounds; their processes are killed at the end of
// each, and no process of another run. The control is the same outside.
func TestCommandsAreBoundedAndEnd(t *testing.T) {
	testhost.Root(t)
	testhost.NoResidue(t)
	h, err := Detect()
	if err != nil {
		t.Fatal(err)
	}
	name := string(agent.NewID())
	mine, other := commandsOf(t, h, 64001, name), commandsOf(t, h, 64001, string(agent.NewID()))
	const many = "for i in 1 2 3 4 5 6 7 8; do sleep 1000 & done; wait"
	outside := realGroup(t)
	join(t, outside, many).begin(t)
	count := func(g *Group, want int) func() bool {
		return func() bool { pids, err := g.Pids(); return err == nil && len(pids) == want }
	}
	eventually(t, "control: nine processes outside", count(outside, 9))
	join(t, other.Group, "echo ready; read end").begin(t)
	eventually(t, "one process in the other run's", count(other.Group, 1))
	join(t, mine.Group, strings.ReplaceAll(many, "sleep", "setsid sleep")).begin(t)
	// A shell that cannot fork ends, or tries again.
	eventually(t, "a seventh process of both runs' is refused", func() bool { return refusedForks(t, mine.Group) })
	if pids, err := mine.Pids(); err != nil || len(pids) < 4 || len(pids) > 5 {
		t.Errorf("%v beside one of the other run, %v", pids, err)
	}

	memory := func() string {
		file := map[bool][]string{true: {mine.paths["memory"], "memory.limit_in_bytes"}, false: {mine.paths[unified], "memory.max"}}[mine.onV1()]
		text, err := os.ReadFile(filepath.Join(filepath.Dir(file[0]), file[1]))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	if memory() != "33554432" {
		t.Errorf("memory: %s", memory())
	}
	if err := mine.End(context.Background()); err != nil {
		t.Fatal(err)
	}
	if pids, err := mine.Pids(); err != nil || len(pids) > 0 {
		t.Errorf("%v live on, %v", pids, err)
	}
	if !count(other.Group, 1)() {
		t.Error("the other run's command was ended")
	}
	if err := other.End(context.Background()); err != nil {
		t.Error(err)
	}
	for _, dir := range mine.dirs {
		if _, err := os.Stat(filepath.Dir(dir)); err == nil {
			t.Errorf("%s is left", filepath.Dir(dir))
		}
	}
}

// refusedForks reports whether the user's bound has refused a process. Before Linux 6.11 the kernel counts that
// where the process would have been.
func refusedForks(t *testing.T, g *Group) bool {
	t.Helper()
	tasks := g.paths[unified]
	if g.paths["pids"] != "" {
		tasks = g.paths["pids"]
	}
	for _, dir := range []string{tasks, filepath.Dir(tasks)} {
		text, err := os.ReadFile(filepath.Join(dir, "pids.events"))
		if errors.Is(err, fs.ErrNotExist) && dir == tasks { // on cgroup v2 only the user's group has the controller
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if fields := strings.Fields(string(text)); fields[1] != "0" {
			return true
		}
	}
	return false
}

// A command whose maker has ended is found by its lock, and ended by the name of its run.
func TestAbandonedCommandsAreFound(t *testing.T) {
	testhost.Root(t)
	testhost.NoResidue(t)
	h, err := Detect()
	if err != nil {
		t.Fatal(err)
	}
	name := string(agent.NewID())
	c := commandsOf(t, h, 64001, name)
	join(t, c.Group, "sleep 1000").begin(t)
	found := func() bool {
		names, err := h.AbandonedCommands()
		if err != nil {
			t.Fatal(err)
		}
		return slices.Contains(names, name)
	}
	if found() {
		t.Error("the maker lives")
	}
	if err := unix.Flock(int(c.lock.Fd()), unix.LOCK_UN); err != nil { // as its end does
		t.Fatal(err)
	}
	if !found() {
		t.Error("it is not found")
	}
	if err := h.EndCommands(context.Background(), name); err != nil {
		t.Fatal(err)
	}
	if pids, err := c.Pids(); err != nil || len(pids) > 0 || found() {
		t.Errorf("%v live on, %v", pids, err)
	}
}
