//go:build root

package oci

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/oci"
)

const forever = "exec sleep 100000"

// TestTheDeadlineHoldsByItself: clove-oci is not called between start and the end.
func TestTheDeadlineHoldsByItself(t *testing.T) {
	h := newHeld(t)
	free := h.begin("free", h.Bundle(forever, cgroup("free")))
	if found := monitors(h.Root); len(found) != 0 {
		t.Errorf("a container without rules has monitors: %v", found)
	}
	h.Must("create", "--bundle", h.Bundle(forever, annotated(oci.AnnotationTimeout, "300ms")), "one")
	pid := h.State("one").Pid
	// The deadline counts from start, not from create.
	if h.deadline("one") != 0 {
		t.Error("the deadline counts before the start")
	}
	before := bootTime(t)
	h.Must("start", "one")
	h.Await("the deadline", func() bool { return !runs(pid) })
	if at := bootTime(t); at-before < 300e6 {
		t.Errorf("it came after %d ms", (at-before)/1e6)
	}
	if !runs(free) {
		t.Error("the container without a deadline has ended, too")
	}
	h.Must("delete", "one")
	h.Must("delete", "--force", "free")
}

// TestRunInTheForegroundIsHeld: the output of run says how its container ended.
func TestRunInTheForegroundIsHeld(t *testing.T) {
	h := newHeld(t)
	got := h.Do("run", "--bundle", h.Bundle(forever, annotated(oci.AnnotationTimeout, "300ms")), "one")
	if got.Status != 128+9 {
		t.Errorf("%+v", got)
	}
	if got := h.Do("run", "--bundle", h.Bundle("exit 3", annotated(oci.AnnotationTimeout, "1h")), "one"); got.Status != 3 || got.Err != "" {
		t.Errorf("before its deadline: %+v", got)
	}
}

// TestAKilledMonitorIsStartedAgain: by the next call, with the same deadline.
func TestAKilledMonitorIsStartedAgain(t *testing.T) {
	h := newHeld(t)
	pid := h.begin("one", h.Bundle(forever, annotated(oci.AnnotationTimeout, "1h")))
	h.killMonitor()
	h.rewrite("one", "deadline_boot_ns", bootTime(t)) // an hour is over
	if !runs(pid) {
		t.Fatal("it ended without a monitor: the rest of this test shows nothing")
	}
	h.Must("state", "one")
	h.Await("the deadline", func() bool { return !runs(pid) })
	h.Must("delete", "one")

	pid = h.begin("two", h.Bundle(forever, annotated(oci.AnnotationTimeout, "1h")))
	deadline := h.deadline("two")
	h.killMonitor()
	h.Must("list")
	if h.monitor(); h.deadline("two") != deadline || !runs(pid) {
		t.Errorf("the deadline moved from %d to %d", deadline, h.deadline("two"))
	}
	h.Must("delete", "--force", "two")
}

// TestNothingStartsUnheld: between create and start the monitor may be killed, or its files
// destroyed. If create is killed, a container may never have had a monitor.
func TestNothingStartsUnheld(t *testing.T) {
	h := newHeld(t)
	bundle := h.Bundle(forever, annotated(oci.AnnotationTimeout, "300ms"))
	h.Must("create", "--bundle", bundle, "one")
	pid := h.State("one").Pid
	h.killMonitor()
	h.Must("start", "one")
	h.Await("the deadline", func() bool { return !runs(pid) })
	h.Must("delete", "one")

	file := filepath.Join(h.Root, "two", "keeper.json")
	for name, destroy := range map[string]func() error{
		"destroyed": func() error { return os.WriteFile(file, []byte("{"), 0o600) },
		"gone":      func() error { return os.Remove(file) },
	} {
		h.Must("create", "--bundle", bundle, "two")
		h.killMonitor()
		if err := destroy(); err != nil {
			t.Fatal(err)
		}
		if got := h.Do("start", "two"); got.Status != 1 || h.State("two").Status != specs.StateCreated {
			t.Errorf("%s: it started unheld: %+v", name, got)
		}
		_ = os.Remove(file) // with destroyed files the container is not started either
		h.Must("delete", "--force", "two")
	}
}

// TestCallsAtOnceBringBackOneMonitor: the start among the calls waits for it.
func TestCallsAtOnceBringBackOneMonitor(t *testing.T) {
	h := newHeld(t)
	h.Must("create", "--bundle", h.Bundle(forever, annotated(oci.AnnotationTimeout, "1h")), "one")
	pid := h.State("one").Pid
	h.killMonitor()
	var calls []*exec.Cmd
	for _, verb := range []string{"state", "state", "state", "start"} {
		call := h.Command(t.Context(), verb, "one")
		if err := call.Start(); err != nil {
			t.Fatal(err)
		}
		calls = append(calls, call)
	}
	for _, call := range calls {
		if err := call.Wait(); err != nil {
			t.Errorf("%v: %v", call.Args, err)
		}
	}
	if h.monitor(); h.deadline("one") == 0 || !runs(pid) {
		t.Error("it did not start")
	}
	h.Must("delete", "--force", "one")
}

// TestAPausedContainerMeetsItsDeadline: on v1 a frozen process does not end by KILL, as the
// control shows. On v2 it does.
func TestAPausedContainerMeetsItsDeadline(t *testing.T) {
	h := newHeld(t)
	var spec *specs.Spec
	keep := func(s *specs.Spec) { spec = s }
	free := h.begin("free", h.Bundle(forever, cgroup("free"), keep))
	thaw, outlives := h.freeze(free, spec)
	if err := unix.Kill(free, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}

	pid := h.begin("one", h.Bundle(forever, annotated(oci.AnnotationTimeout, "1h"), keep))
	h.freeze(pid, spec)
	h.expireIn("one", 0)
	h.Await("the deadline", func() bool { return !runs(pid) })
	h.Must("delete", "one")

	// It was killed earlier than the other one.
	if outlives && !runs(free) {
		t.Error("the control: a frozen process died of KILL alone")
	}
	thaw()
	h.Await("the end of the control", func() bool { return !runs(free) })
	h.Must("delete", "--force", "free")
}

// freeze stops a container that executes programs all the time, as pause does. outlives
// reports whether a frozen process must be thawed to die.
func (h *held) freeze(pid int, s *specs.Spec) (thaw func(), outlives bool) {
	h.t.Helper()
	// If it were frozen in execve, it would wait for its threads' end, and they for the thaw.
	h.Await("its program", func() bool {
		name, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
		return string(name) == "sleep\n"
	})
	for _, way := range []struct {
		file, stop, on, told, stopped string
		outlives                      bool
	}{
		{"/sys/fs/cgroup/freezer" + s.Linux.CgroupsPath + "/freezer.state", "FROZEN", "THAWED", "freezer.state", "FROZEN", true},
		{"/sys/fs/cgroup" + s.Linux.CgroupsPath + "/cgroup.freeze", "1", "0", "cgroup.events", "frozen 1", false},
	} {
		if _, err := os.Stat(way.file); err != nil {
			continue
		}
		write := func(text string) {
			if err := os.WriteFile(way.file, []byte(text), 0); err != nil {
				h.t.Error(err)
			}
		}
		write(way.stop)
		h.Await("the freezer", func() bool {
			told, _ := os.ReadFile(filepath.Join(filepath.Dir(way.file), way.told))
			return strings.Contains(string(told), way.stopped)
		})
		return func() { write(way.on) }, way.outlives
	}
	h.t.Fatal("there is no freezer")
	return nil, false
}

// TestTheContainersClockIsItsOwn: the monitor uses the host's.
func TestTheContainersClockIsItsOwn(t *testing.T) {
	h := newHeld(t)
	directory, share := h.shared()
	pid := h.begin("one", h.Bundle("cat /proc/uptime >/tmp/uptime; "+forever, share, annotated(oci.AnnotationTimeout, "1h"), func(s *specs.Spec) {
		s.Linux.Namespaces = append(s.Linux.Namespaces, specs.LinuxNamespace{Type: specs.TimeNamespace})
		s.Linux.TimeOffsets = map[string]specs.LinuxTimeOffset{"boottime": {Secs: 86400 * 365}}
	}))
	first, _, _ := strings.Cut(h.await(directory, "uptime"), " ")
	inside, err := strconv.ParseFloat(first, 64)
	if err != nil {
		t.Fatal(err)
	}
	if outside := float64(bootTime(t)) / 1e9; inside < outside+86400 {
		t.Errorf("inside it is %.0f s, outside %.0f s: the offset does not show", inside, outside)
	}
	if !runs(pid) {
		t.Error("its own clock ended it")
	}
	h.Must("delete", "--force", "one")
}

// TestAnotherRootIsAnotherWorld: a container with the same id below another root is another
// one.
func TestAnotherRootIsAnotherWorld(t *testing.T) {
	h := newHeld(t)
	pid := h.begin("one", h.Bundle(forever, annotated(append(recordAt("one.json"), oci.AnnotationTimeout, "1h")...)))
	monitor := h.monitor()
	other := *h.Runtime
	other.Root = filepath.Join(h.Directory(), "other")
	if err := os.Mkdir(other.Root, 0o711); err != nil {
		t.Fatal(err)
	}
	if got := other.Do("start", "one"); got.Status != 1 {
		t.Errorf("start: %+v", got)
	}
	other.Must("delete", "--force", "one")
	if !runs(pid) || h.monitor() != monitor {
		t.Error("a call with another root ended the container or its monitor")
	}
	h.Must("delete", "--force", "one")
	if got := h.record("one.json"); got.Status != agent.StatusSignaled {
		t.Errorf("%+v", got)
	}
}
