//go:build root

package cgroups

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"clove.run/clove/internal/testhost"
)

// TestOnlyIsExact: another process in the container's cgroup would be killed with it.
func TestOnlyIsExact(t *testing.T) {
	g := realGroup(t)
	if err := g.Only(os.Getpid()); err == nil {
		t.Error("an empty group holds this process")
	}
	first := join(t, g, "read more")
	if err := g.Only(first.Process.Pid); err != nil {
		t.Error(err)
	}
	if err := g.Only(os.Getpid()); err == nil {
		t.Error("another's group holds this process")
	}
	join(t, g, "read more")
	if err := g.Only(first.Process.Pid); err == nil {
		t.Error("a group of two holds one")
	}
	root, err := OpenBundle(map[string]string{"pids": "/sys/fs/cgroup/pids", unified: "/sys/fs/cgroup/clove-no-such-cgroup"})
	if err != nil {
		t.Fatal(err)
	}
	if err := root.Only(first.Process.Pid); err == nil {
		t.Error("the whole host is one container")
	}
}

// TestKillEndsWhatFrozeItself: a process that may write to its cgroup may freeze a child of
// it.
func TestKillEndsWhatFrozeItself(t *testing.T) {
	g := realGroup(t)
	m := join(t, g, "read more")
	top, name, stop := g.paths["freezer"], "freezer.state", "FROZEN"
	if top == "" {
		top, name, stop = g.paths[unified], "cgroup.freeze", "1"
	}
	below := filepath.Join(top, "below")
	if err := os.Mkdir(below, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, step := range [][2]string{{"cgroup.procs", strconv.Itoa(m.Process.Pid)}, {name, stop}} {
		if err := write(below, step[0], step[1]); err != nil {
			t.Fatal(err)
		}
	}
	if g.onV1() { // the control: on v2 a frozen process can be killed without a thaw
		if err := g.signalAll(); err != nil {
			t.Fatal(err)
		}
		if err := write(top, name, "THAWED"); err != nil {
			t.Fatal(err)
		}
		if ends(t, m.Process.Pid, 100*time.Millisecond) {
			t.Fatal("control: it died although only the cgroup above was thawed")
		}
	}
	mustKill(t, g)
	expectEmpty(t, g)
}

// TestLeavingIsToTheRoot: a process that leaves is in the root of every v1 hierarchy. Freezing
// or killing the cgroup in which the process was started does not affect it any more.
func TestLeavingIsToTheRoot(t *testing.T) {
	g := realGroup(t)
	m := joinRole(t, g, "leave")
	before, err := os.ReadFile("/proc/" + strconv.Itoa(m.Process.Pid) + "/cgroup")
	if name := filepath.Base(g.dirs[0]); err != nil || !strings.Contains(string(before), name) {
		t.Fatalf("%v: it was not in the group:\n%s", err, before)
	}
	m.begin(t)
	after, err := io.ReadAll(m.out)
	stays := testhost.Cgroup() == testhost.CgroupV2 // on v2 a process is started directly in its cgroup
	if err != nil || strings.Contains(string(after), filepath.Base(g.dirs[0])) != stays {
		t.Errorf("%v: it is in\n%s", err, after)
	}
}
