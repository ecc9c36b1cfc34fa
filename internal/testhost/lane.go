package testhost

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// The lanes that a root test runs in.
const (
	LaneRoot = "root" // this very host
	LaneVM   = "vm"   // the virtual machine: pure cgroup v2, another kernel, slow
)

// The layouts of the cgroup file systems, as exit records name them.
const (
	CgroupV2     = "v2"
	CgroupHybrid = "hybrid"
	CgroupV1     = "v1"
)

// Lane names the lane that the test runs in.
func Lane() string {
	if os.Getenv("CLOVE_LANE") == LaneVM {
		return LaneVM
	}
	return LaneRoot
}

// Cgroup reports how this host mounts its cgroup file systems.
func Cgroup() string { return cgroupOf("/sys/fs/cgroup") }

// cgroupOf tells the layouts apart by where cgroup v2 is mounted: at the root, below a
// folder of systemd's beside v1 (hybrid), or not at all.
func cgroupOf(root string) string {
	if isCgroup2(root) {
		return CgroupV2
	}
	if isCgroup2(filepath.Join(root, "unified")) {
		return CgroupHybrid
	}
	return CgroupV1
}

// isCgroup2 asks statfs(2): the name of a folder does not say what is mounted there.
func isCgroup2(path string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC
}

// Sample chooses the number of repetitions in a test: whole in the long modes (make
// test-all), short with `go test -short` (make test), and emulated in the virtual machine,
// which takes several times as long.
func Sample(whole, short, emulated int) int {
	switch {
	case Lane() == LaneVM:
		return emulated
	case testing.Short():
		return short
	}
	return whole
}

// Few returns the first n rows of a table in the lane v2, otherwise all rows. The emulated
// machine has little time there, and the rows show one behaviour in several ways.
func Few[T any](rows []T, n int) []T {
	if Lane() == LaneVM && testing.Short() {
		return rows[:min(n, len(rows))]
	}
	return rows
}

// Root skips a test that lacks the privilege to change the host. Otherwise it takes the
// host lock, so that other test processes that call it wait until this one ends.
func Root(t testing.TB) {
	t.Helper()
	if reason := lacking(os.Geteuid(), unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETUID, unix.CAP_MKNOD); reason != "" {
		Missing(t, "%s", reason)
	}
	if err := hostLock(); err != nil {
		t.Fatalf("cannot have this host for one test process: %v", err)
	}
	catchIgnored()
	t.Logf("lane %s, cgroup %s", Lane(), Cgroup())
}

// catchIgnored makes started programs independent of how the tests were started. nohup(1)
// ignores SIGHUP, a shell's background job SIGINT, and execve(2) passes ignored signals on.
// A caught signal is reset to its default.
var catchIgnored = sync.OnceFunc(func() {
	for _, s := range []os.Signal{unix.SIGHUP, unix.SIGINT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s) // no effect on this process, which ignored it before
		}
	}
})

// Tool skips a test whose external program is not installed, and returns the program's path.
func Tool(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, "the program %s is not installed", name)
	}
	return path
}

// Binary returns the path of one of clove's own built programs, from
// CLOVE_BIN_DIR or else the tree's bin folder. A program that is not there has
// not been built, which fails the test on every host.
func Binary(t testing.TB, name string) string {
	t.Helper()
	folder := os.Getenv("CLOVE_BIN_DIR")
	if folder == "" {
		folder = filepath.Join(moduleRoot(t), "bin")
	}
	path := filepath.Join(folder, name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("cannot find clove's own %s (run 'make build', or set CLOVE_BIN_DIR): %v", name, err)
	}
	return path
}

// moduleRoot is the nearest folder above the test's own that holds a go.mod.
func moduleRoot(t testing.TB) string {
	t.Helper()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatalf("cannot tell the test's folder: %v", err)
	}
	for folder != "/" {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder
		}
		folder = filepath.Dir(folder)
	}
	t.Fatalf("cannot find go.mod above the test's folder")
	return ""
}

// Missing ends a test that this host cannot run: with a failure in CI, where every test
// must run, elsewhere with a skip and the reason.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	reason := fmt.Sprintf(format, args...)
	if os.Getenv("CI") == "true" {
		t.Fatalf("cannot run on this host, and CI=true allows no skip: %s", reason)
	}
	t.Skipf("cannot run on this host: %s", reason)
}

// lacking says which of the needed capabilities this process does not have in
// effect, "" when none.
func lacking(uid int, needed ...int) string {
	if uid != 0 {
		return fmt.Sprintf("it needs root, and this is uid %d", uid)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var held [2]unix.CapUserData
	if err := unix.Capget(&header, &held[0]); err != nil {
		return fmt.Sprintf("cannot read this process's capabilities: %v", err)
	}
	var absent []string
	for _, capability := range needed {
		if held[capability/32].Effective&(1<<(capability%32)) == 0 {
			absent = append(absent, fmt.Sprint(capability))
		}
	}
	if absent != nil {
		return "root lacks the capabilities numbered " + strings.Join(absent, ", ") + " (linux/capability.h)"
	}
	return ""
}
