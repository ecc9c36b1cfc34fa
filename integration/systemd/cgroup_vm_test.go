//go:build vm

package systemd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// Agents and supervisors are in the slice, in the subtree that systemd has delegated, and
// cloved is not among them.
func TestSystemdSlice(t *testing.T) {
	installed(t)
	detach(t, "one", counting)
	run := inspect(t, "one")
	const unit = "/clove.slice/clove-agents.service/"
	if at := cgroupOf(t, run.PID); !strings.HasPrefix(at, unit+"agents/"+string(run.Spec.ID)) {
		t.Errorf("the agent is in %s", at)
	}
	if at := cgroupOf(t, run.Lease.SupervisorPID); at != unit+"supervisors" {
		t.Errorf("the supervisor is in %s", at)
	}
	if at := cgroupOf(t, mainPID(t)); at != "/system.slice/clove.service" {
		t.Errorf("cloved is in %s", at)
	}
	tree := do(t, "systemd-cgls", "--no-pager", "--unit", "clove.slice")
	for _, word := range []string{"clove-agents.service", string(run.Spec.ID), "clove supervise", "sleep"} {
		if !strings.Contains(tree, word) {
			t.Errorf("systemd-cgls shows no %q:\n%s", word, tree)
		}
	}
	t.Log(tree)
	if state := do(t, "systemctl", "is-active", "clove-agents.service", "clove.slice"); state != "active\nactive" {
		t.Errorf("the units are %s", state)
	}
}

// systemd writes a slice's controllers whenever a unit starts or stops. It removes them, with
// their limits, from a cgroup that was made directly in the slice; an agent's cgroup, further
// down, keeps them.
func TestSystemdLeavesLimitsAlone(t *testing.T) {
	installed(t)
	detach(t, "one", counting, "--memory", "64M")
	limit := filepath.Join(inspect(t, "one").Lease.Cgroups[""], "memory.max")
	// The control is a slice like clove's, with a cgroup that systemd does not know.
	none := []string{"-p", "MemoryAccounting=no", "-p", "TasksAccounting=no", "-p", "CPUAccounting=no", "-p", "IOAccounting=no"}
	begin := func(slice, unit string) {
		t.Helper()
		do(t, "systemd-run", append(append([]string{"--quiet", "--slice=" + slice, "--unit=" + unit}, none...), "sleep", "infinity")...)
		t.Cleanup(func() { try(t, "systemctl", "stop", unit+".service") })
	}
	const slice = "/sys/fs/cgroup/control.slice"
	begin("control.slice", "first")
	sh(t, "echo +memory >"+slice+"/cgroup.subtree_control && mkdir "+slice+"/agent && echo 64M >"+slice+"/agent/memory.max")
	t.Cleanup(func() { sh(t, "rmdir "+slice+"/agent") })
	begin("control.slice", "second")
	begin("clove.slice", "third")
	do(t, "systemctl", "daemon-reload")
	do(t, "systemctl", "set-property", "--runtime", "clove.slice", "CPUWeight=200")
	if _, err := os.Stat(slice + "/agent/memory.max"); err == nil {
		t.Error("the control kept its limit, so this test shows nothing")
	}
	text, err := os.ReadFile(limit)
	if err != nil || strings.TrimSpace(string(text)) != "67108864" {
		t.Errorf("the agent's memory.max is %q, %v", text, err)
	}
}

// Stopping the agents' unit ends all agents: each has its record, and runs with a restart
// policy start again when they may. The cgroup that systemd removed is made again, with its
// limits.
func TestSystemdAgentsUnit(t *testing.T) {
	installed(t)
	detach(t, "never", counting)
	detach(t, "always", counting, "--restart", "always", "--memory", "64M")
	first := look(t, "always")
	do(t, "clove", "drain")
	do(t, "systemctl", "stop", "clove-agents.service")
	if _, err := os.Stat("/sys/fs/cgroup/clove.slice/clove-agents.service"); err == nil {
		t.Error("its cgroup stays")
	}
	for _, name := range []string{"never", "always"} {
		until(t, name+" has a record", func() bool { return inspect(t, name).Record != nil || inspect(t, name).Queue.Starts > 1 })
	}
	if record := inspect(t, "never").Record; record.Status != agent.StatusSignaled || record.Error != nil {
		t.Errorf("%+v, %+v", record, record.Error)
	}
	do(t, "systemctl", "start", "clove-agents.service")
	do(t, "clove", "drain", "--undo")
	until(t, "it runs again", func() bool { return inspect(t, "always").State == agent.StateRunning })
	if second := look(t, "always"); second.memory != first.memory || second.pid == first.pid {
		t.Errorf("%+v, then %+v", first, second)
	}
}

// A foreground run works as on a host without clove's units, also while the agents' unit is
// stopped.
func TestSystemdForeground(t *testing.T) {
	installed(t)
	run := func() {
		t.Helper()
		if o := try(t, "clove", "run", "--rm", "--", "echo", "hello"); o.code != 0 || o.text != "hello\n" {
			t.Errorf("%d, %q", o.code, o.text)
		}
		hog := "x=$(head -c 200000000 /dev/zero | tr '\\0' x)"
		if o := try(t, "clove", "run", "--rm", "--memory", "32M", "--", "sh", "-c", hog); o.code != agent.ExitKilled {
			t.Errorf("%d, %q", o.code, o.text)
		}
	}
	run()
	do(t, "systemctl", "stop", "clove.service", "clove.socket", "clove-agents.service")
	run()
	do(t, "systemctl", "start", "clove-agents.service", "clove.service")
	run()
}
