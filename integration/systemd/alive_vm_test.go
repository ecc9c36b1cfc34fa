//go:build vm

package systemd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// alive is what must not change while cloved is replaced.
type alive struct {
	pid, supervisor int
	line            int
	memory          string // of the cgroup, as the kernel reports it
}

func look(t *testing.T, name string) alive {
	t.Helper()
	run := inspect(t, name)
	if run.State != agent.StateRunning || run.Lease == nil {
		t.Fatalf("%s is %s", name, run.State)
	}
	limit, err := os.ReadFile(filepath.Join(run.Lease.Cgroups[""], "memory.max"))
	if err != nil {
		t.Fatal(err)
	}
	return alive{pid: run.PID, supervisor: run.Lease.SupervisorPID, line: lastLine(t, name), memory: strings.TrimSpace(string(limit))}
}

// goesOn compares the state, and waits for more output.
func goesOn(t *testing.T, name string, before alive) {
	t.Helper()
	after := look(t, name)
	if after.pid != before.pid || after.supervisor != before.supervisor || after.memory != before.memory {
		t.Errorf("%s was %+v and is %+v", name, before, after)
	}
	until(t, name+" writes on", func() bool { return lastLine(t, name) > after.line })
}

// However cloved ends, agents have the same processes, limits and deadline afterwards, and
// their output continues.
func TestSystemdRestartWithAgentsAlive(t *testing.T) {
	installed(t)
	detach(t, "survivor", counting, "--memory", "64M", "--pids-limit", "20")
	before := look(t, "survivor")
	if before.memory != "67108864" {
		t.Fatalf("memory.max is %s", before.memory)
	}
	for _, way := range []struct {
		name string
		end  func()
	}{
		{"restart", func() { do(t, "systemctl", "restart", "clove.service") }},
		{"kill", func() {
			pid := mainPID(t)
			if err := unix.Kill(pid, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			until(t, "systemd starts cloved again", func() bool {
				now := mainPID(t)
				return now != 0 && now != pid && do(t, "systemctl", "show", "--property=ActiveState", "--value", "clove.service") == "active"
			})
		}},
		{"stop and start", func() {
			do(t, "systemctl", "stop", "clove.service", "clove.socket")
			do(t, "systemctl", "start", "clove.service")
		}},
		{"daemon-reload", func() { do(t, "systemctl", "daemon-reload") }},
	} {
		way.end()
		goesOn(t, "survivor", before)
		t.Logf("%s: process %d goes on", way.name, before.pid)
	}
	// The limit still kills: a process that uses more than 64 MiB in the same cgroup.
	o := try(t, "clove", "exec", "survivor", "--", "sh", "-c", "x=$(head -c 200000000 /dev/zero | tr '\\0' x)")
	if r := try(t, "clove", "wait", "survivor"); r.code != agent.ExitKilled {
		t.Errorf("wait: %d, %s; exec: %d, %s", r.code, r.text, o.code, o.text)
	}
	if run := inspect(t, "survivor"); run.Record == nil || run.Record.Status != agent.StatusOOM {
		t.Errorf("%+v", run.Record)
	}
}

// A deadline that comes while cloved is down is kept.
func TestSystemdDeadlineWithoutCloved(t *testing.T) {
	installed(t)
	detach(t, "timed", "sleep 1000", "--timeout", "10s")
	supervisor := inspect(t, "timed").Lease.SupervisorPID
	do(t, "systemctl", "stop", "clove.service", "clove.socket")
	until(t, "the supervisor is gone", func() bool { return unix.Kill(supervisor, 0) == unix.ESRCH })
	do(t, "systemctl", "start", "clove.service")
	if r := try(t, "clove", "wait", "timed"); r.code != agent.ExitTimeout {
		t.Errorf("%d, %s", r.code, r.text)
	}
}
