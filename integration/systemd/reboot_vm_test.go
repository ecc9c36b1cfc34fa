//go:build vm

package systemd

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// Agents that are alive when the machine goes down, by a shutdown or a power cut, have a true
// record afterwards, run again if their policy says so, and leave nothing else.
func TestSystemdReboot(t *testing.T) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s", try(t, "clove", "ps", "-a", "--json").text)
		}
		if t.Failed() || boot() == 3 {
			removeAll(t) // otherwise later tests would find these agents
		}
	})
	switch boot() {
	case 1:
		install(t)
		startForReboot(t, "first")
		again(t, "soft")
	case 2:
		checkAfterReboot(t, "first", "")
		startForReboot(t, "second")
		again(t, "hard")
	case 3:
		checkAfterReboot(t, "second", "the host was restarted")
	}
}

func startForReboot(t *testing.T, name string) {
	t.Helper()
	// Small, so that the sum fits into the memory that cloved grants.
	for run, flags := range map[string][]string{"-never": nil, "-always": {"--restart", "always"}, "-failing": {"--restart", "on-failure"},
		"-later": {"--delay", "1000h"}} {
		detach(t, name+run, counting, append(flags, "--memory", "64M")...)
	}
	for _, run := range []string{"-never", "-always", "-failing"} {
		until(t, name+run+" runs", func() bool { return lastLine(t, name+run) > 0 })
	}
}

// checkAfterReboot expects no error in the record of an agent that the shutdown ended, and
// status lost after a power cut.
func checkAfterReboot(t *testing.T, name, lost string) {
	t.Helper()
	until(t, "clove's units are active", func() bool { // they start beside this test
		return try(t, "systemctl", "is-active", "clove.service", "clove.socket", "clove-agents.service").text == "active\nactive\nactive\n"
	})
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	want := agent.StatusSignaled // TERM at shutdown ended it
	if lost != "" {
		want = agent.StatusKilled
	}
	never := inspect(t, name+"-never")
	if never.State != agent.StateEnded || never.Record == nil || never.Record.Status != want {
		t.Fatalf("%s: %s, %+v", never.Spec.Name, never.State, never.Record)
	}
	if failure := never.Record.Error; (failure != nil) != (lost != "") || failure != nil && !strings.Contains(failure.Message, lost) {
		t.Errorf("%s: %+v", never.Spec.Name, failure)
	}
	for _, policy := range []string{"-always", "-failing"} {
		until(t, name+policy+" runs again", func() bool { return inspect(t, name+policy).State == agent.StateRunning })
		run := inspect(t, name+policy)
		if run.Lease.BootID != strings.TrimSpace(string(boot)) || run.Queue.Starts != 2 {
			t.Errorf("%s: of boot %s, start %d", run.Spec.Name, run.Lease.BootID, run.Queue.Starts)
		}
	}
	if look(t, name+"-always").memory != "67108864" {
		t.Error("its limit is gone")
	}
	until(t, "every agent runs that its policy wants, those of an earlier boot too", func() bool {
		return !slices.ContainsFunc(runs(t), func(run agent.Run) bool {
			return run.Spec.Restart.Policy.Restarts() && run.State != agent.StateRunning
		})
	})
	if later := inspect(t, name+"-later"); later.State != agent.StateQueued {
		t.Errorf("%s is %s", later.Spec.Name, later.State)
	}
	if o := try(t, "clove", "check"); o.code != 0 {
		t.Errorf("clove check: %s", o.text)
	}
	nothingLeft(t)
}

// nothingLeft compares the host with the live runs.
func nothingLeft(t *testing.T) {
	t.Helper()
	live := 0
	for _, run := range runs(t) {
		if run.State == agent.StateRunning {
			live++
		}
	}
	for what, pattern := range map[string]string{"cgroups": "/sys/fs/cgroup/clove.slice/clove-agents.service/agents/*-*/cgroup.procs",
		"run directories": "/run/clove/*/lock", "loop devices": "/sys/block/loop*/loop/backing_file"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) != live {
			t.Errorf("%d runs live, and there are %d %s: %v", live, len(found), what, found)
		}
	}
}
