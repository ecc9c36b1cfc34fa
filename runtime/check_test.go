package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/internal/testhost"
)

func TestOwned(t *testing.T) {
	t.Parallel()
	live, kept := owned([]agent.Run{
		{Spec: agent.Spec{ID: "a"}, State: agent.StateRunning},
		{Spec: agent.Spec{ID: "b"}, State: agent.StateEnded, Layer: "/l/b.img"},
		{Spec: agent.Spec{ID: "c"}, State: agent.StateEnded},
	})
	if !live["a"] || live["b"] || live["c"] || kept["a"] || !kept["b"] || kept["c"] || live["d"] || kept["d"] {
		t.Errorf("live %v, kept %v", live, kept)
	}
}

func TestBelow(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{"/run/clove/x": true, "/run/clove": false, "/run/clove2/x": false, "/x": false} {
		if isBelow(path, "/run/clove") != want {
			t.Errorf("%s: not %v", path, want)
		}
	}
}

// TestCheckFindsAndGCRemoves: check finds and gc removes what belongs to no run, and nothing
// else. The control is the same installation before anything was left in it.
func TestCheckFindsAndGCRemoves(t *testing.T) {
	t.Parallel()
	r := testRuntime(t)
	if problems, err := r.Check(); err != nil || len(problems) != 0 {
		t.Fatalf("control: a new installation has %v, %v", problems, err)
	}
	dead, _ := deadRun(t, r, nil)
	alive, err := newRunDirectory(r.paths, "00000000000000aa")
	if err != nil {
		t.Fatal(err)
	}
	defer alive.remove()
	orphan := r.paths.runDirectory("00000000000000bb")
	layer := r.paths.layer("00000000000000cc") // of a start that did not come to its agent
	if err := os.Mkdir(orphan, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(layer, nil, 0o600), os.WriteFile(starting(layer), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	// A template whose maker was killed, a template in use and one out of use.
	for name, age := range map[string]time.Duration{"base-1-aa.img": time.Hour, "base-1-bb.img": 1000 * time.Hour} {
		path := filepath.Join(r.paths.templates(), name)
		if err := errors.Join(os.MkdirAll(filepath.Join(r.paths.templates(), ".new-1"), 0o700), os.WriteFile(path, nil, 0o600),
			os.Chtimes(path, time.Time{}, time.Now().Add(-age))); err != nil {
			t.Fatal(err)
		}
	}
	kinds := func(problems []Problem) (all []string) {
		for _, p := range problems {
			all = append(all, p.Kind+" "+p.Subject)
		}
		slices.Sort(all)
		return all
	}
	want := []string{"layer 00000000000000cc.img", "run " + string(dead.Spec.ID), "run-directory 00000000000000bb", "template .new-1"}
	found, err := r.Check()
	if got := kinds(found); err != nil || !slices.Equal(got, want) {
		t.Errorf("check finds %q, %v; want %q", got, err, want)
	}
	removed, err := r.GC()
	want = append(want, "template base-1-bb.img") // an old cache is no problem
	if got := kinds(removed); err != nil || !slices.Equal(got, want) {
		t.Errorf("gc removes %q, %v; want %q", got, err, want)
	}
	if problems, err := r.Check(); err != nil || len(problems) != 0 {
		t.Errorf("left: %v, %v", problems, err)
	}
	if !exists(alive.path) || exists(orphan) || exists(layer) {
		t.Error("gc took the wrong ones")
	}
}

// TestALockedOrphanIsLeftAlone: another process locked it after gc had looked.
func TestALockedOrphanIsLeftAlone(t *testing.T) {
	t.Parallel()
	r := testRuntime(t)
	dir, err := newRunDirectory(r.paths, "00000000000000aa")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.remove()
	if _, err := r.sweep(Problem{Kind: ProblemDir, Subject: "00000000000000aa"}, nil); err != nil || !exists(dir.path) {
		t.Errorf("%v; it is there: %v", err, exists(dir.path))
	}
	if _, err := r.sweep(Problem{Kind: ProblemDir, Subject: "00000000000000bb"}, nil); err != nil {
		t.Errorf("one that is gone: %v", err)
	}
}

// TestCheckLooksTwice: what another process is just removing is no problem; what stays is one.
func TestCheckLooksTwice(t *testing.T) {
	t.Parallel()
	r := testRuntime(t)
	brief, lasting := r.paths.layer("00000000000000aa"), r.paths.layer("00000000000000bb")
	for _, path := range []string{brief, lasting} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	view, err := r.look()
	if err != nil || len(view.orphans()) != 2 {
		t.Fatalf("control: it sees %v, %v", view.orphans(), err)
	}
	if err := os.Remove(brief); err != nil {
		t.Fatal(err)
	}
	view.gates = append(view.gates, Problem{Kind: ProblemGate, Subject: "one that has died"})
	if err := r.lookAgain(&view); err != nil || len(view.orphans()) != 1 || view.orphans()[0].Subject != "00000000000000bb.img" {
		t.Errorf("it keeps %v, %v", view.orphans(), err)
	}
}

// TestAnOrphanThatEndedIsSwept: its pid may be the id of a thread by now.
func TestAnOrphanThatEndedIsSwept(t *testing.T) {
	t.Parallel()
	for _, pid := range []int{1<<22 + 1, testhost.Thread(t)} {
		if err := killGate(strconv.Itoa(pid)); err != nil {
			t.Errorf("%d: %v", pid, err)
		}
	}
}
