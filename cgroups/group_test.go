package cgroups

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"clove.run/clove/internal/testhost"
)

// fakeGroup is a group made of plain files: controller and file name to text.
func fakeGroup(t *testing.T, files map[[2]string]string) *Group {
	t.Helper()
	root, paths := t.TempDir(), map[string]string{}
	for at, text := range files {
		controller, name := at[0], at[1]
		paths[controller] = filepath.Join(root, "tree-"+controller, "clove", testID)
		path := filepath.Join(paths[controller], name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	g, err := Open(paths)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// absentGroup is a group whose directories do not exist.
func absentGroup(t *testing.T, controllers ...string) *Group {
	t.Helper()
	paths := map[string]string{}
	for _, c := range controllers {
		paths[c] = filepath.Join(t.TempDir(), "clove", testID)
	}
	g, err := Open(paths)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestPidsAreTheUnionOfAllTrees(t *testing.T) {
	g := fakeGroup(t, map[[2]string]string{
		{"memory", "cgroup.procs"}:     "30\n10\n",
		{"pids", "cgroup.procs"}:       "10\n20\n0\n",
		{"pids", "sub/cgroup.procs"}:   "40\n",
		{"pids", "sub/a/cgroup.procs"}: "5\n",
	})
	got, err := g.Pids()
	if want := []int{5, 10, 20, 30, 40}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

func TestPidsOfOddGroups(t *testing.T) {
	if got, err := absentGroup(t, "memory", "pids").Pids(); err != nil || len(got) != 0 {
		t.Errorf("a group that is gone has %v, %v", got, err)
	}
	broken := fakeGroup(t, map[[2]string]string{{"pids", "cgroup.procs"}: "ten\n"})
	if _, err := broken.Pids(); err == nil {
		t.Error("a pid that is no number was accepted")
	}
	if err := broken.Kill(t.Context()); err == nil {
		t.Error("a group whose processes cannot be listed was said to be dead")
	}
}

func TestRemoveIsIdempotentAndTakesSubgroups(t *testing.T) {
	g := absentGroup(t, "memory", "pids")
	for _, dir := range g.dirs {
		if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := g.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range g.dirs {
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there", dir)
		}
		if _, err := os.Stat(filepath.Dir(dir)); err != nil {
			t.Errorf("the parent of all agents went too: %v", err)
		}
	}
}

func TestRemoveGivesUpWithTheContextAndNamesWhoIsInside(t *testing.T) {
	g := fakeGroup(t, map[[2]string]string{{"pids", "cgroup.procs"}: fmt.Sprintln(os.Getpid())})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := g.Remove(ctx) // a directory with a plain file in it is never empty
	if want := fmt.Sprintf("process %d (", os.Getpid()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want it to name %s", err, want)
	}
}

// zombie starts a process that ends and is not reaped before the end of the test.
func zombie(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(Describe(cmd.Process.Pid), "state Z"); {
		if time.Now().After(deadline) {
			t.Fatal("true did not end")
		}
		time.Sleep(time.Millisecond) // only wait(2) reports it, and would reap
	}
	return cmd.Process.Pid
}

// A process that stays in the list whatever is done stands for one in uninterruptible sleep.
func TestKillGivesUpWithTheContextAndNamesTheSurvivor(t *testing.T) {
	pid := zombie(t)
	g := fakeGroup(t, map[[2]string]string{
		{"pids", "cgroup.procs"}: fmt.Sprintf("0\n%d\n", pid),
		{"pids", "pids.max"}:     "999",
	})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := g.Kill(ctx)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{fmt.Sprintf("process %d (true, state Z", pid), "process 0 (not visible here)"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	// Without a freezer, a pids limit keeps the group from forking meanwhile.
	if text, _ := os.ReadFile(filepath.Join(g.paths["pids"], "pids.max")); !strings.HasPrefix(string(text), "0") {
		t.Errorf("pids.max is %q", text)
	}
}

func TestKillOfNobodyTouchesNothing(t *testing.T) {
	g := fakeGroup(t, map[[2]string]string{{"pids", "cgroup.procs"}: "", {"pids", "pids.max"}: "999", {"freezer", "freezer.state"}: "THAWED"})
	if err := g.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(filepath.Join(g.paths["pids"], "pids.max")); string(text) != "999" {
		t.Errorf("pids.max became %q", text)
	}
	if err := absentGroup(t, "", "pids").Kill(t.Context()); err != nil {
		t.Errorf("a group that is gone: %v", err)
	}
}

func TestDescribeIsBounded(t *testing.T) {
	pids := make([]int, 100)
	got := describe(pids)
	if strings.Count(got, "process ") != described || !strings.HasSuffix(got, "92 more") {
		t.Errorf("got %q", got)
	}
	if got := describe(nil); got != "no process" {
		t.Errorf("got %q", got)
	}
}

func TestBoundedKeepsACallersDeadline(t *testing.T) {
	early, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	want, _ := early.Deadline()
	kept, done := bounded(early)
	defer done()
	if got, _ := kept.Deadline(); !got.Equal(want) {
		t.Errorf("deadline moved to %s", got)
	}
	added, done := bounded(t.Context())
	defer done()
	if _, has := added.Deadline(); !has {
		t.Error("a wait without end is possible")
	}
}

// TestAThreadsNumberIsNoMember: the listed process has ended, and a thread has its pid.
func TestAThreadsNumberIsNoMember(t *testing.T) {
	g := fakeGroup(t, map[[2]string]string{{"pids", "cgroup.procs"}: ""})
	if err := g.signal([]int{testhost.Thread(t)}); err != nil {
		t.Error(err)
	}
}
