//go:build root

package oci

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/ocitest"
	"clove.run/clove/internal/testhost"
	"clove.run/clove/oci"
)

// held is a runtime whose records go to a directory of the test.
type held struct {
	*ocitest.Runtime
	t       *testing.T
	records string
}

func newHeld(t *testing.T) *held {
	t.Helper()
	r := newRuntime(t)
	state := filepath.Join(r.Directory(), "state")
	t.Setenv("CLOVE_ROOT", state)
	t.Setenv("CLOVE_SOCKET", filepath.Join(r.Directory(), "clove.sock")) // not the host's own cloved
	h := &held{Runtime: r, t: t, records: filepath.Join(state, "records")}
	t.Cleanup(func() {
		h.Await("the end of all monitors", func() bool { return len(monitors(r.Root)) == 0 })
	})
	return h
}

// annotated gives a bundle clove's own rules.
func annotated(pairs ...string) func(*specs.Spec) {
	return func(s *specs.Spec) {
		s.Annotations = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			s.Annotations[pairs[i]] = pairs[i+1]
		}
	}
}

// cgroup puts a bundle into a cgroup of its own beside the test's others.
func cgroup(name string) func(*specs.Spec) {
	return func(s *specs.Spec) { s.Linux.CgroupsPath = filepath.Dir(s.Linux.CgroupsPath) + "/" + name }
}

// begin creates and starts a container.
func (h *held) begin(id, bundle string) (pid int) {
	h.t.Helper()
	h.Must("create", "--bundle", bundle, id)
	pid = h.State(id).Pid
	h.Must("start", id)
	return pid
}

// monitors returns the monitors of containers below root.
func monitors(root string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		text, _ := os.ReadFile(file) // it may have ended
		words := strings.Split(string(text), "\x00")
		if len(words) > 2 && words[1] == "keep" && strings.HasPrefix(words[2], root+"/") {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// monitor returns the only monitor.
func (h *held) monitor() int {
	h.t.Helper()
	found := monitors(h.Root)
	if len(found) != 1 {
		h.t.Fatalf("there are %d monitors", len(found))
	}
	return found[0]
}

// killMonitor kills the monitor, as the kernel may do when memory runs out.
func (h *held) killMonitor() {
	h.t.Helper()
	pid, ended := h.watchMonitor()
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		h.t.Fatal(err)
	}
	ended()
}

// watchMonitor opens the only monitor; ended waits for its complete end. A dying process's
// command line and first thread are gone before its last thread closes its files, and with
// them releases its lock.
func (h *held) watchMonitor() (pid int, ended func()) {
	h.t.Helper()
	pid = h.monitor()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	monitor := os.NewFile(uintptr(fd), "monitor")
	return pid, func() {
		h.t.Helper()
		defer monitor.Close()
		if gone, err := poll(monitor); !gone {
			h.t.Fatalf("the monitor does not end: %v", err)
		}
	}
}

// runs reports whether a process exists and is not a zombie, without a call of clove-oci,
// which would start a killed monitor again.
func runs(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// deadlineOf returns the deadline on CLOCK_BOOTTIME that the monitor has stored.
func deadlineOf(t *testing.T, r *ocitest.Runtime, id string) int64 {
	t.Helper()
	var order struct {
		Deadline int64 `json:"deadline_boot_ns"`
	}
	decode(t, filepath.Join(r.Root, id, "keeper.json"), &order)
	return order.Deadline
}

func (h *held) deadline(id string) int64 {
	h.t.Helper()
	return deadlineOf(h.t, h.Runtime, id)
}

// rewrite changes the stored order of a container's monitor, while there is none.
func (h *held) rewrite(id, field string, value any) {
	h.t.Helper()
	path := filepath.Join(h.Root, id, "keeper.json")
	order := map[string]json.RawMessage{} // numbers keep all their digits
	decode(h.t, path, &order)
	text, err := json.Marshal(value)
	if err == nil {
		order[field] = text
		text, err = json.Marshal(order)
	}
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// expireIn moves the deadline of a container, with a new monitor. With a short deadline from
// the start, a slow host would reach it before the test is ready.
func (h *held) expireIn(id string, left time.Duration) {
	h.t.Helper()
	h.killMonitor()
	h.rewrite(id, "deadline_boot_ns", bootTime(h.t)+left.Nanoseconds())
	h.Must("state", id)
}

// longer gives try more and more time until a deadline, until it reports that what has to
// happen before it did: no fixed time is enough for every host. For a container whose first
// process has ended no killed monitor is started again, so its deadline cannot be moved then.
func (h *held) longer(try func(left time.Duration) (enough bool)) {
	h.t.Helper()
	for left := 2 * time.Second; !try(left); left *= 2 {
		if left > testhost.Patience(10*time.Second) { // less than Await waits
			h.t.Fatalf("%s are not enough", left)
		}
	}
}

func bootTime(t *testing.T) int64 {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		t.Fatal(err)
	}
	return now.Nano()
}

func decode(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// record reads a record of the test.
func (h *held) record(name string) (r agent.Record) {
	h.t.Helper()
	decode(h.t, filepath.Join(h.records, name), &r)
	return r
}

// recordAt is the annotation for a record of this name.
func recordAt(name string) []string {
	return []string{oci.AnnotationRecord, oci.RecordsDir + "/" + name}
}

// members returns the processes in a container's cgroups, if those exist.
func members(s *specs.Spec) (pids []int) {
	for _, pattern := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		files, _ := filepath.Glob(pattern + s.Linux.CgroupsPath + "/cgroup.procs")
		for _, file := range files {
			text, _ := os.ReadFile(file) // it went with the cgroup
			for _, word := range strings.Fields(string(text)) {
				pid, _ := strconv.Atoi(word)
				pids = append(pids, pid)
			}
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}
