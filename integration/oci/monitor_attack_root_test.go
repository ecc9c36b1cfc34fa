//go:build root

package oci

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"clove.run/clove/oci"
)

// almighty gives the container's root every capability that the host has.
func almighty(s *specs.Spec) {
	var all []string
	for _, name := range []string{"KILL", "SETUID", "SETGID", "SYS_PTRACE", "SYS_ADMIN", "DAC_OVERRIDE", "NET_ADMIN", "SYS_RESOURCE"} {
		all = append(all, "CAP_"+name)
	}
	// Capabilities that this host lacks cannot be given.
	bounded, _ := os.ReadFile("/proc/self/status")
	_, text, _ := strings.Cut(string(bounded), "CapBnd:")
	mask, _ := strconv.ParseUint(strings.Fields(text)[0], 16, 64)
	if mask&(1<<unix.CAP_SYS_RESOURCE) == 0 {
		all = slices.DeleteFunc(all, func(name string) bool { return name == "CAP_SYS_RESOURCE" })
	}
	s.Process.Capabilities = &specs.LinuxCapabilities{Bounding: all, Effective: all, Permitted: all}
}

// hostPids puts the container into the host's pid namespace.
func hostPids(s *specs.Spec) {
	s.Linux.Namespaces = slices.DeleteFunc(s.Linux.Namespaces, func(n specs.LinuxNamespace) bool { return n.Type == specs.PIDNamespace })
}

// strangers gives the container a user namespace without the host's root.
func strangers(s *specs.Spec) {
	s.Linux.Namespaces = append(s.Linux.Namespaces, specs.LinuxNamespace{Type: specs.UserNamespace})
	s.Linux.UIDMappings = []specs.LinuxIDMapping{{ContainerID: 0, HostID: 3000000, Size: 65536}}
	s.Linux.GIDMappings = s.Linux.UIDMappings
	// A user namespace may not mount the proc of a pid namespace that it does not own.
	for i, m := range s.Mounts {
		if m.Type == "proc" {
			s.Mounts[i] = specs.Mount{Destination: "/proc", Source: "/proc", Type: "bind", Options: []string{"rbind"}}
		}
	}
}

// shared makes a directory of the test that is /tmp in the container.
func (h *held) shared() (directory string, edit func(*specs.Spec)) {
	h.t.Helper()
	directory, err := os.MkdirTemp(h.Directory(), "shared")
	if err == nil {
		err = os.Chmod(directory, 0o777)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return directory, func(s *specs.Spec) {
		s.Mounts = append(s.Mounts, specs.Mount{Destination: "/tmp", Source: directory, Type: "bind", Options: []string{"bind"}})
	}
}

// await waits for a file that a container writes into its shared directory.
func (h *held) await(directory, name string) string {
	h.t.Helper()
	var text []byte
	h.Await(name, func() bool {
		text, _ = os.ReadFile(filepath.Join(directory, name))
		return strings.HasSuffix(string(text), "\n")
	})
	return strings.TrimSpace(string(text))
}

// victim is a process of the host's root.
func victim(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "100000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

// TestTheMonitorIsOutOfReach: a root with every capability in a pid namespace of its own cannot
// signal the monitor. The control: such a root can kill the host's processes if it sees them,
// which is why that container gets no rules of clove's.
func TestTheMonitorIsOutOfReach(t *testing.T) {
	h := newHeld(t)
	prey := victim(t)
	directory, share := h.shared()
	kill := func(pid int) string {
		return "kill -9 " + strconv.Itoa(pid) + " 2>/dev/null; echo $? >/tmp/status; "
	}
	h.begin("free", h.Bundle(kill(prey.Process.Pid)+forever, almighty, hostPids, share, cgroup("free")))
	if got := h.await(directory, "status"); got != "0" || prey.Wait() == nil || prey.ProcessState.String() != "signal: killed" {
		t.Fatalf("the control: kill gave %s, the process is %v", got, prey.ProcessState)
	}
	h.Must("delete", "--force", "free")

	for _, annotations := range [][]string{{oci.AnnotationTimeout, "1h"}, recordAt("x.json")} {
		got := h.Do("create", "--bundle", h.Bundle(forever, almighty, hostPids, annotated(annotations...)), "refused")
		if got.Status != 1 || !strings.Contains(got.Err, annotations[0]) || !strings.Contains(got.Err, "pid namespace") {
			t.Errorf("%s: %+v", annotations[0], got)
		}
	}

	directory, share = h.shared()
	h.Must("create", "--bundle", h.Bundle("until test -s /tmp/pid; do sleep 0.1; done; kill -9 $(cat /tmp/pid); status=$?; kill -9 -1; echo $status >/tmp/status; "+forever,
		almighty, share, annotated(oci.AnnotationTimeout, "1h")), "one")
	monitor := h.monitor()
	h.Must("start", "one")
	if err := os.WriteFile(filepath.Join(directory, "pid"), []byte(strconv.Itoa(monitor)), 0o644); err != nil {
		t.Fatal(err)
	}
	got := h.await(directory, "status")
	h.Must("state", "one") // if the monitor were dead, this call would start another
	if got == "0" || h.monitor() != monitor || !runs(monitor) {
		t.Errorf("kill gave %s, the monitor %d lives: %t", got, monitor, runs(monitor))
	}
	h.expireIn("one", 0)
	h.Await("the deadline", func() bool { return len(monitors(h.Root)) == 0 })
	h.Must("delete", "one")
}

// daemons starts processes in sessions of their own, by a double fork.
const daemons = "for i in 1 2 3; do setsid sh -c 'sleep 100000 & exit' & done; wait; echo $$ >/tmp/ready; "

// TestDaemonsMeetTheDeadline: without a pid namespace, which would end them with the first
// process: among the host's processes, as an unprivileged id.
func TestDaemonsMeetTheDeadline(t *testing.T) {
	h := newHeld(t)
	var spec *specs.Spec
	keep := func(s *specs.Spec) { spec = s }
	directory, share := h.shared()
	free := h.begin("free", h.Bundle(daemons+forever, hostPids, strangers, share, cgroup("free"), keep))
	h.await(directory, "ready")
	if err := unix.Kill(free, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	h.Await("the end of the first process", func() bool { return !runs(free) })
	if left := members(spec); len(left) != 3 {
		t.Fatalf("the control: %d daemons outlive the first process", len(left))
	}
	h.Must("delete", "--force", "free")

	begin := func() (first int, directory string) {
		directory, share := h.shared()
		first = h.begin("one", h.Bundle(daemons+"until test -e /tmp/go; do sleep 0.1; done", hostPids, strangers, share, keep, annotated(oci.AnnotationTimeout, "1h")))
		h.await(directory, "ready")
		return first, directory
	}
	end := func(name string, first int) {
		t.Helper()
		h.Await(name+": the deadline", func() bool { return !runs(first) && len(members(spec)) == 0 })
		if bootTime(t) < h.deadline("one") {
			t.Errorf("%s: all ended before the deadline", name)
		}
		h.Must("delete", "one")
	}
	first, _ := begin()
	h.expireIn("one", 0)
	end("the first process lives", first)
	h.longer(func(left time.Duration) (enough bool) {
		first, directory := begin()
		h.expireIn("one", left)
		if err := os.WriteFile(filepath.Join(directory, "go"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		h.Await("the end of the first process", func() bool { return !runs(first) })
		enough = len(members(spec)) == 3
		end("the first process has ended", first)
		return enough
	})
}

// TestForkingMeetsTheDeadline: each process forks the next one and ends, so any list of them
// is out of date when it is read. The container is in the host's pid namespace, so the end of
// the first process ends no other.
func TestForkingMeetsTheDeadline(t *testing.T) {
	h := newHeld(t)
	var spec *specs.Spec
	directory, share := h.shared()
	const script = "hop() { hop & }; for i in 1 2 3 4 5 6 7 8 9 10; do hop; done; echo >/tmp/ready; "
	h.begin("one", h.Bundle(script+forever, hostPids, strangers, share, annotated(oci.AnnotationTimeout, "1h"), func(s *specs.Spec) { spec = s }))
	h.await(directory, "ready")
	first := members(spec)
	h.Await("other processes", func() bool {
		now := members(spec)
		return len(now) > 1 && !slices.Equal(now, first)
	})
	h.expireIn("one", 0)
	h.Await("the deadline", func() bool { return len(members(spec)) == 0 })
	if bootTime(t) < h.deadline("one") {
		t.Error("all ended before the deadline")
	}
	h.Must("delete", "one")
}

// TestTheMonitorIsInNobodysCgroup: neither in the engine's, from which create is called, nor in
// the container's.
func TestTheMonitorIsInNobodysCgroup(t *testing.T) {
	h := newHeld(t)
	engine := filepath.Dir(h.Spec("").Linux.CgroupsPath) + "/engine"
	roots := []string{"/sys/fs/cgroup"}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.procs"); err != nil {
		roots = []string{"/sys/fs/cgroup/freezer", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/unified"}
	}
	join := ""
	for _, root := range roots {
		if err := os.MkdirAll(root+engine, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Remove(root + engine) })
		join += "echo $$ >" + root + engine + "/cgroup.procs; "
	}
	bundle := h.Bundle(forever, annotated(oci.AnnotationTimeout, "1h"))
	out, err := exec.Command("sh", "-c", join+`cat /proc/self/cgroup; exec "$@" >/dev/null 2>&1 </dev/null`, "-",
		h.Binary, "--root", h.Root, "create", "--bundle", bundle, "one").Output()
	if err != nil || !strings.Contains(string(out), engine) {
		t.Fatalf("%v: create was not in the engine's cgroup:\n%s", err, out)
	}
	cgroups, err := os.ReadFile("/proc/" + strconv.Itoa(h.monitor()) + "/cgroup")
	if err != nil || strings.Contains(string(cgroups), "clove-oci-test") {
		t.Errorf("%v: the monitor is in\n%s", err, cgroups)
	}
	h.Must("delete", "--force", "one")
}

// TestTheMonitorHoldsNothingOfTheEngines: otherwise an engine would wait for the end of its
// pipes.
func TestTheMonitorHoldsNothingOfTheEngines(t *testing.T) {
	h := newHeld(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	create := exec.Command(h.Binary, "--root", h.Root, "create", "--bundle", h.Bundle(forever, annotated(oci.AnnotationTimeout, "1h")), "one")
	create.ExtraFiles = []*os.File{write}
	err = create.Run()
	write.Close()
	if err != nil {
		t.Fatal(err)
	}
	h.monitor()
	eof := make(chan error, 1)
	go func() { _, err := read.Read(make([]byte, 1)); eof <- err }()
	h.Await("the end of the pipe", func() bool { return len(eof) == 1 })
	h.Must("delete", "--force", "one")
}
