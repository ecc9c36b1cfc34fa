package testhost

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// settleTime is how long the kernel may take to finish what a test took down.
const settleTime = 5 * time.Second

// settlePause is the time between two checks. No single event can be waited for: each kind
// would need its own, and mounts and descriptors have none.
const settlePause = 20 * time.Millisecond

// kinds are the things that a test may leave behind, each with its lister.
// A lister returns one line per thing; a line that appears twice counts twice.
var kinds = []struct {
	name string
	list func(dirs []string) ([]string, error)
}{
	{"mount", listMounts},
	{"cgroup", listCgroups},
	{"process in a clove cgroup", listCgroupProcesses},
	{"loop device", listLoops},
	{"network namespace", listNetworkNamespaces},
	{"file", listFiles},
	{"open file of the test process", listOwnFiles},
}

// NoResidue fails the test if, once it and its later clean-ups have ended, the
// machine holds more than now. dirs are the test's state and run directories,
// whose files count too. They must not vanish before the check: make them with
// t.TempDir before calling NoResidue.
func NoResidue(t testing.TB, dirs ...string) {
	t.Helper()
	wakePoller(t)
	before := listAll(t, dirs)
	t.Cleanup(func() {
		t.Helper()
		check(t, before, dirs, Patience(settleTime))
	})
}

// check reports what is there more than before, once the time is over.
func check(t testing.TB, before map[string]int, dirs []string, settle time.Duration) {
	t.Helper()
	deadline := time.Now().Add(settle)
	for {
		runtime.GC() // Go keeps pipes of splice(2) for the next use, until it collects
		extra := added(before, listAll(t, dirs))
		if len(extra) == 0 {
			return
		}
		if time.Now().After(deadline) {
			for _, line := range extra {
				t.Errorf("left behind: %s", line)
			}
			endLeft(extra)
			return
		}
		time.Sleep(settlePause)
	}
}

// endLeft kills the processes that a test left, if the machine belongs to the tests alone:
// otherwise every later test would fail for the same reason.
func endLeft(extra []string) {
	if Lane() != LaneVM {
		return
	}
	for _, line := range extra {
		var pid int
		if n, _ := fmt.Sscanf(line, "process in a clove cgroup: %d in", &pid); n == 1 {
			unix.Kill(pid, unix.SIGKILL) // an error means that it has ended
		}
	}
}

// listAll counts every thing on the machine, keyed "kind: line".
func listAll(t testing.TB, dirs []string) map[string]int {
	t.Helper()
	all := map[string]int{}
	for _, kind := range kinds {
		lines, err := kind.list(dirs)
		if err != nil {
			t.Fatalf("cannot list every %s: %v", kind.name, err)
		}
		for _, line := range lines {
			all[kind.name+": "+line]++
		}
	}
	return all
}

// added lists what after has more of than before, sorted.
func added(before, after map[string]int) []string {
	var extra []string
	for line, count := range after {
		if more := count - before[line]; more == 1 {
			extra = append(extra, line)
		} else if more > 1 {
			extra = append(extra, fmt.Sprintf("%s (%d times)", line, more))
		}
	}
	sort.Strings(extra)
	return extra
}

// wakePoller makes Go's runtime open its poller's descriptors now, so that the first pipe
// of a test is not reported as a leak.
func wakePoller(t testing.TB) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatalf("cannot make a pipe: %v", err)
	}
	defer r.Close()
	defer w.Close()
	if err := r.SetReadDeadline(time.Now().Add(time.Hour)); err != nil {
		t.Fatalf("cannot start the poller: %v", err)
	}
}
