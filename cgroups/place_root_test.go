//go:build root

package cgroups

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/testhost"
)

// The kernel must report that a process in the cgroup that Place returns is below clove's own
// cgroup (v1) or in the slice (v2), in every hierarchy.
func TestPlaceIsWhereTheKernelSees(t *testing.T) {
	g := realGroup(t)
	m := join(t, g, "read more")
	seen, err := readOwn(filepath.Join("/proc", strconv.Itoa(m.Process.Pid), "cgroup"))
	if err != nil {
		t.Fatal(err)
	}
	own, err := readOwn("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	id := filepath.Base(g.dirs[0])
	for controller, dir := range g.paths {
		want := filepath.Join(own[controller], parentV1, id)
		if controller == unified {
			want = filepath.Join("/", parentV1, id)
			if !g.onV1() {
				want = filepath.Join("/", parentV2, id)
			}
		}
		if seen[controller] != want {
			t.Errorf("%q: the kernel sees %s, want %s", controller, seen[controller], want)
		}
		var fs unix.Statfs_t
		if err := unix.Statfs(dir, &fs); err != nil || (fs.Type != unix.CGROUP_SUPER_MAGIC && fs.Type != unix.CGROUP2_SUPER_MAGIC) {
			t.Errorf("%s is on no cgroup file system (%v)", dir, err)
		}
	}
	pids, err := g.Pids()
	if err != nil || !slices.Equal(pids, []int{m.Process.Pid}) {
		t.Errorf("Pids() = %v, %v", pids, err)
	}
}

// Controllers that the host reports must be writable in an agent's group.
func TestHasMeansThatTheFilesAreThere(t *testing.T) {
	g := realGroup(t)
	h, err := Detect()
	if err != nil {
		t.Fatal(err)
	}
	if want := testhost.Cgroup(); string(h.Mode()) != want {
		t.Errorf("Mode() = %s, the host is %s", h.Mode(), want)
	}
	files := map[string][2]string{ // controller to its limit on v1 and v2
		"memory": {"memory.limit_in_bytes", "memory.max"}, "pids": {"pids.max", "pids.max"},
		"cpu": {"cpu.cfs_quota_us", "cpu.max"}, "cpuset": {"cpuset.cpus", "cpuset.cpus"},
	}
	for controller, names := range files {
		dir, name := g.paths[unified], names[1]
		if g.onV1() {
			dir, name = g.paths[controller], names[0]
		}
		if reason := h.Missing(controller); reason != "" || !exists(dir, name) {
			t.Errorf("%s: missing %q; %s/%s is there: %t", controller, reason, dir, name, exists(dir, name))
		}
	}
	if reason := h.Missing("no-such"); !strings.Contains(reason, "no-such controller") {
		t.Errorf("a controller that does not exist: %q", reason)
	}
}

func TestPrepareIsSafeForManyAtOnce(t *testing.T) {
	g := realGroup(t)
	h, err := Detect()
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	failures := make(chan error, 200)
	for range cap(failures) {
		all.Go(func() { failures <- h.Prepare() })
	}
	all.Wait()
	close(failures)
	for err := range failures {
		if err != nil {
			t.Fatal(err)
		}
	}
	ids, err := h.List()
	if err != nil || !slices.Contains(ids, filepath.Base(g.dirs[0])) {
		t.Errorf("List() = %v, %v", ids, err)
	}
}

func TestRemoveIsIdempotentOnTheRealHost(t *testing.T) {
	g := realGroup(t)
	sub := filepath.Join(g.dirs[0], "sub", "deeper")
	if err := os.MkdirAll(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := g.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range g.dirs {
		if exists(dir, "") {
			t.Errorf("%s is still there", dir)
		}
	}
	if used, err := g.Stats(); err != nil || figures(used) != "" {
		t.Errorf("a removed group still has figures: %s, %v", figures(used), err)
	}
}
