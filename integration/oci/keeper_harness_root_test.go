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

// held is a runtime whose records go to a directory of the test's own.
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
	t.Setenv("CLOVE_SOCKET", filepath.Join(r.Directory(), "clove.sock")) // and not the host's own cloved
	h := &held{Runtime: r, t: t, records: filepath.Join(state, "records")}
	t.Cleanup(func() {
		h.Await("the end of all keepers", func() bool { return len(keepers(r.Root)) == 0 })
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

// cgroup puts a bundle into one of its own beside the test's others.
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

// keepers are the processes that hold containers below root.
func keepers(root string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		text, _ := os.ReadFile(file) // it may be gone
		words := strings.Split(string(text), "\x00")
		if len(words) > 2 && words[1] == "keep" && strings.HasPrefix(words[2], root+"/") {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// keeper is the one that there is.
func (h *held) keeper() int {
	h.t.Helper()
	found := keepers(h.Root)
	if len(found) != 1 {
		h.t.Fatalf("there are %d keepers", len(found))
	}
	return found[0]
}

// killKeeper takes the keeper away, as the kernel does when memory is out.
func (h *held) killKeeper() {
	h.t.Helper()
	pid, ended := h.watchKeeper()
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		h.t.Fatal(err)
	}
	ended()
}

// watchKeeper takes hold of the keeper that there is; ended waits for its whole
// end. Command line and first thread of a process that dies are gone before its
// last thread lets go of its files, and of its lock with them.
func (h *held) watchKeeper() (pid int, ended func()) {
	h.t.Helper()
	pid = h.keeper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	keeper := os.NewFile(uintptr(fd), "keeper")
	return pid, func() {
		h.t.Helper()
		defer keeper.Close()
		if gone, err := poll(keeper); !gone {
			h.t.Fatalf("the keeper does not end: %v", err)
		}
	}
}

// runs tells whether a process is there and no zombie, without a call of
// clove-oci: that would bring a killed keeper back.
func runs(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// deadlineOf is the moment of CLOCK_BOOTTIME that the keeper has on disk.
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

// rewrite changes what the keeper of a container has on disk, while there is none.
func (h *held) rewrite(id, field string, value any) {
	h.t.Helper()
	path := filepath.Join(h.Root, id, "keeper.json")
	order := map[string]json.RawMessage{} // numbers stay as long as they are
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

// expireIn moves the deadline of a container, by its keeper's death. With a short
// one from the start, a slow host would come to it before the test is ready for it.
func (h *held) expireIn(id string, left time.Duration) {
	h.t.Helper()
	h.killKeeper()
	h.rewrite(id, "deadline_boot_ns", bootTime(h.t)+left.Nanoseconds())
	h.Must("state", id)
}

// longer gives try more and more time until a deadline, until it says that it was
// enough for what has to happen before: no time is enough for every host. For who
// is killed once its first process has ended none is started again, so that its
// deadline cannot be moved then.
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

// record reads one of the test's own.
func (h *held) record(name string) (r agent.Record) {
	h.t.Helper()
	decode(h.t, filepath.Join(h.records, name), &r)
	return r
}

// recordAt is the annotation for a record of this name.
func recordAt(name string) []string {
	return []string{oci.AnnotationRecord, oci.RecordsDir + "/" + name}
}

// members are the processes in a container's cgroups, whatever there is of them.
func members(s *specs.Spec) (pids []int) {
	for _, pattern := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		files, _ := filepath.Glob(pattern + s.Linux.CgroupsPath + "/cgroup.procs")
		for _, file := range files {
			text, _ := os.ReadFile(file) // gone with the cgroup
			for _, word := range strings.Fields(string(text)) {
				pid, _ := strconv.Atoi(word)
				pids = append(pids, pid)
			}
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}
