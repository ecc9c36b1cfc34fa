//go:build root

package cgroups

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/pidfd"
	"clove.run/clove/internal/testhost"
)

// bombPids is the pids limit of each fork bomb.
const bombPids = 150

// explode starts a fork bomb and waits until it reaches its limit.
func explode(t *testing.T, g *Group) {
	t.Helper()
	g.limit(t, "pids", "pids.max", "pids.max", strconv.Itoa(bombPids))
	before, err := g.Stats()
	if err != nil || before.PidsMaxEvents == nil {
		t.Fatalf("got %s, %v", figures(before), err)
	}
	joinRole(t, g, "bomb").begin(t)
	eventually(t, "the bomb is refused forks", func() bool {
		s, err := g.Stats()
		return err == nil && s.PidsMaxEvents != nil && *s.PidsMaxEvents > *before.PidsMaxEvents
	})
}

func mustKill(t *testing.T, g *Group) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testhost.Patience(10*time.Second))
	defer cancel()
	from := time.Now()
	if err := g.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	t.Logf("killed in %s", time.Since(from).Round(100*time.Microsecond))
}

func expectEmpty(t *testing.T, g *Group) {
	t.Helper()
	if pids, err := g.Pids(); err != nil || len(pids) > 0 {
		t.Errorf("still there: %v, %v", pids, err)
	}
}

// TestKillBeatsAForkBomb kills in each way that this host offers.
func TestKillBeatsAForkBomb(t *testing.T) {
	ways := []struct {
		name string
		keep func(controller string) bool
	}{
		{"all trees", func(string) bool { return true }},
		{"v1 freezer only", func(c string) bool { return c != unified }},
		{"pids limit only", func(c string) bool { return c != unified && c != "freezer" }},
	}
	if testhost.Cgroup() == testhost.CgroupV2 {
		ways = ways[:1] // the only hierarchy
	}
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			g := realGroup(t)
			controlOneByOne(t, g)
			explode(t, g)
			mustKill(t, g.onlyTrees(t, way.keep))
			expectEmpty(t, g)
			s, err := g.Stats()
			if err != nil || s.PidsPeak != nil && *s.PidsPeak > bombPids {
				t.Errorf("the bomb outgrew its limit: %s, %v", figures(s), err)
			}
		})
	}
}

// controlOneByOne shows the difficulty: a process that is forked after the listing survives
// the killing of all listed ones.
func controlOneByOne(t *testing.T, g *Group) {
	t.Helper()
	m := join(t, g, "sleep 1000 & echo forked; read more")
	listed, err := g.Pids()
	if err != nil {
		t.Fatal(err)
	}
	m.begin(t)
	m.expectLine(t, "forked")
	for _, pid := range listed {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := g.Pids(); err != nil || !slices.ContainsFunc(left, func(pid int) bool { return !slices.Contains(listed, pid) }) {
		t.Fatalf("control: no process survived a plain kill: %v, %v", left, err)
	}
}

// A frozen group, by either freezer, makes no new processes.
func TestHeldStillGroupsDoNotFork(t *testing.T) {
	means := []string{"freezer", "pids"}
	if testhost.Cgroup() == testhost.CgroupV2 {
		means = []string{unified}
	}
	for _, controller := range means {
		t.Run("by tree "+controller, func(t *testing.T) {
			g := realGroup(t)
			m := join(t, g, "sleep 1000 & echo forked; read more; sleep 1000 & echo forked; read more")
			m.begin(t)
			m.expectLine(t, "forked") // the control
			before, err := g.Pids()
			if err != nil {
				t.Fatal(err)
			}
			g.onlyTrees(t, func(c string) bool { return c == controller }).holdStill()
			m.begin(t)
			m.out.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
			if n, err := m.out.Read(make([]byte, 16)); n > 0 {
				t.Errorf("it went on (%v)", err)
			}
			if after, err := g.Pids(); err != nil || len(after) > len(before) {
				t.Errorf("it forked: %v, then %v, %v", before, after, err)
			}
		})
	}
}

// The fallback for kernels without cgroup.kill must work on every host.
func TestKillOneByOneWhileHeldStill(t *testing.T) {
	g := realGroup(t)
	explode(t, g)
	// Kill waits less and repeats the kill; here one kill must be enough.
	eventually(t, "the group stands still", func() bool { return g.freeze(roundPatience) == nil })
	if err := g.signalAll(); err != nil {
		t.Fatal(err)
	}
	g.letGo()
	eventually(t, "one strike was enough", func() bool { pids, err := g.Pids(); return err == nil && len(pids) == 0 })
}

// ends tells whether the process ends within d.
func ends(t *testing.T, pid int, d time.Duration) bool {
	t.Helper()
	process, err := pidfd.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer process.Close()
	return process.WaitFor(d)
}

func TestKillEndsFrozenProcesses(t *testing.T) {
	g := realGroup(t)
	m := join(t, g, "read more")
	if err := g.Freeze(); err != nil {
		t.Fatal(err)
	}
	if g.onV1() { // the control: on v2 a frozen process can be killed without a thaw
		if err := m.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if ends(t, m.Process.Pid, 100*time.Millisecond) {
			t.Fatal("control: a frozen process died of SIGKILL alone")
		}
	}
	mustKill(t, g)
	expectEmpty(t, g)
}

// TestKillLeavesNothingFrozen: also if processes ended under the v2 freezer before, which they
// can.
func TestKillLeavesNothingFrozen(t *testing.T) {
	g := realGroup(t)
	if g.paths[unified] == "" {
		t.Log("this host has no v2 tree: its frozen processes do not die")
		return
	}
	m := join(t, g, "read more")
	v2 := g.onlyTrees(t, func(controller string) bool { return controller == unified })
	if err := v2.Freeze(); err != nil {
		t.Fatal(err)
	}
	if err := m.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if !ends(t, m.Process.Pid, testhost.Patience(time.Minute)) {
		t.Fatal("it did not end")
	}
	mustKill(t, v2)
	if got, err := readFields(v2.paths[unified], "cgroup.freeze"); err != nil || !slices.Equal(got, []string{"0"}) {
		t.Errorf("cgroup.freeze is %v, %v", got, err)
	}
}

func TestKillEndsStoppedProcesses(t *testing.T) {
	g := realGroup(t)
	m := join(t, g, "read more")
	if err := m.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the process is stopped", func() bool { return strings.Contains(Describe(m.Process.Pid), "state T") })
	if err := m.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if ends(t, m.Process.Pid, 50*time.Millisecond) {
		t.Fatal("control: a stopped process died of SIGTERM")
	}
	mustKill(t, g)
	expectEmpty(t, g)
}

func TestKillReachesSubgroups(t *testing.T) {
	g := realGroup(t)
	m := join(t, g, "read more")
	dir := g.paths[unified]
	if dir == "" {
		dir = g.paths["pids"]
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := write(filepath.Join(dir, "sub"), "cgroup.procs", strconv.Itoa(m.Process.Pid)); err != nil {
		t.Fatal(err)
	}
	if pids, err := readPids(dir); err != nil || len(pids) > 0 {
		t.Fatalf("control: the group itself lists %v, %v", pids, err)
	}
	mustKill(t, g)
	if err := g.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A process that is not reaped delays neither Kill nor the removal of the group.
func TestZombiesDoNotCount(t *testing.T) {
	g := realGroup(t)
	m := join(t, g, "exit 0")
	m.begin(t)
	if !ends(t, m.Process.Pid, testhost.Patience(10*time.Second)) {
		t.Fatal("it did not end")
	}
	if about := Describe(m.Process.Pid); !strings.Contains(about, "state Z") {
		t.Fatalf("not a zombie: %s", about)
	}
	mustKill(t, g)
	if err := g.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// If a v1 group is frozen from above, Kill may touch nothing that would thaw it, so no process
// in it can be ended: Kill must return in time with an error that says where the process
// hangs. On v2 the same freeze does not protect it.
func TestKillNamesWhatCannotBeEnded(t *testing.T) {
	g := realGroup(t)
	m := join(t, g, "read more")
	tree := "freezer"
	if !g.onV1() {
		tree = unified
	}
	// The parent's name, by which an agent's cgroup is known: on v2 it has two parts.
	parent := filepath.Dir(g.paths[tree])
	name := filepath.Base(parent)
	if name == agentsV2 {
		name = filepath.Join(unitV2, name)
	}
	above := filepath.Join(strings.TrimSuffix(parent, name), fmt.Sprintf("clove-test-%d", os.Getpid()))
	inner, err := Open(map[string]string{tree: filepath.Join(above, name, string(agent.NewID()))})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(inner.dirs[0], 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := errors.Join(inner.Kill(context.Background()), inner.Remove(context.Background()))
		for dir := filepath.Dir(inner.dirs[0]); dir != filepath.Dir(above); dir = filepath.Dir(dir) {
			err = errors.Join(err, unix.Rmdir(dir))
		}
		if err != nil {
			t.Error(err)
		}
	})
	if err := write(inner.dirs[0], "cgroup.procs", strconv.Itoa(m.Process.Pid)); err != nil {
		t.Fatal(err)
	}
	outer := &Group{paths: map[string]string{tree: above}, dirs: []string{above}}
	if err := outer.Freeze(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testhost.Patience(300*time.Millisecond))
	defer cancel()
	err = inner.Kill(ctx)
	if terr := outer.Thaw(); terr != nil {
		t.Fatal(terr)
	}
	if !g.onV1() {
		if err != nil {
			t.Errorf("v2: %v", err)
		}
		return
	}
	want := fmt.Sprintf("process %d (sh, state D, in ", m.Process.Pid)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	mustKill(t, inner) // the control: after a thaw it ends
}
