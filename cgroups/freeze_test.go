package cgroups

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestFreezeAndThawChooseTheirFreezer(t *testing.T) {
	hybrid := fakeGroup(t, map[[2]string]string{
		{"freezer", "freezer.state"}: "THAWED\n", {"freezer", "cgroup.procs"}: "",
		{"", "cgroup.freeze"}: "0\n", {"", "cgroup.events"}: "populated 0\nfrozen 0\n",
	})
	if err := hybrid.Freeze(); err != nil {
		t.Fatal(err)
	}
	expectFile(t, hybrid.paths["freezer"], "freezer.state", "FROZEN\n")
	expectFile(t, hybrid.paths[unified], "cgroup.freeze", "0\n")
	if err := hybrid.Thaw(); err != nil {
		t.Fatal(err)
	}
	expectFile(t, hybrid.paths["freezer"], "freezer.state", "THAWED\n")

	v2 := fakeGroup(t, map[[2]string]string{
		{"", "cgroup.freeze"}: "0\n", {"", "cgroup.procs"}: "", {"", "cgroup.events"}: "populated 1\nfrozen 1\n"})
	if err := v2.Freeze(); err != nil {
		t.Fatal(err)
	}
	expectFile(t, v2.paths[unified], "cgroup.freeze", "1\n")
}

// expectFile compares a file; a plain file keeps the rest of its older, longer text.
func expectFile(t *testing.T, dir, name, want string) {
	t.Helper()
	if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
		t.Errorf("%s is %q (%v), want %q", name, got, err, want)
	}
}

// TestAnEmptyGroupIsLetGo: a group in which Kill found no process would otherwise look paused
// for ever. On v2 another process's KILL may have ended the frozen ones.
func TestAnEmptyGroupIsLetGo(t *testing.T) {
	for controller, row := range map[string]struct{ name, frozen, want string }{
		"":        {"cgroup.freeze", "1", "0"},
		"freezer": {"freezer.state", "FROZEN", "THAWED"},
	} {
		g := fakeGroup(t, map[[2]string]string{{controller, row.name}: row.frozen, {controller, "cgroup.procs"}: ""})
		if err := g.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
		expectFile(t, g.paths[controller], row.name, row.want)
	}
}

func TestFreezeGivesUp(t *testing.T) {
	// A plain file reads back "FROZENX": a state that is never FROZEN.
	v1 := fakeGroup(t, map[[2]string]string{{"freezer", "freezer.state"}: "FREEZIN"})
	if err := v1.freeze(5 * time.Millisecond); err == nil || !strings.Contains(err.Error(), "FROZEN") {
		t.Errorf("v1: %v", err)
	}
	v2 := fakeGroup(t, map[[2]string]string{
		{"", "cgroup.freeze"}: "0", {"", "cgroup.procs"}: "", {"", "cgroup.events"}: "populated 1\nfrozen 0\n"})
	if err := v2.freeze(5 * time.Millisecond); err == nil || !strings.Contains(err.Error(), "cannot see frozen 1") {
		t.Errorf("v2: %v", err)
	}
}

func TestFreezeWhereThereIsNone(t *testing.T) {
	none := fakeGroup(t, map[[2]string]string{{"pids", "cgroup.procs"}: ""})
	old := fakeGroup(t, map[[2]string]string{{"", "cgroup.procs"}: ""})
	for _, g := range []*Group{none, old} {
		if err := g.Freeze(); !errors.Is(err, ErrNoFreezer) {
			t.Errorf("got %v", err)
		}
	}
	for _, g := range []*Group{absentGroup(t, "freezer"), absentGroup(t, "")} {
		if err := g.Freeze(); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("freezing what is gone: %v", err)
		}
		if err := g.Thaw(); err != nil {
			t.Errorf("thawing what is gone: %v", err)
		}
	}
}

func TestThawSaysThatAParentIsFrozen(t *testing.T) {
	g := fakeGroup(t, map[[2]string]string{
		{"freezer", "freezer.state"}: "FROZEN", {"freezer", "freezer.parent_freezing"}: "1\n"})
	if err := g.Thaw(); err == nil || !strings.Contains(err.Error(), "above it") {
		t.Errorf("got %v", err)
	}
}
