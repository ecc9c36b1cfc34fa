//go:build root

package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// inspect returns the stored run.
func (h *host) inspect(ref string) agent.Run {
	h.t.Helper()
	var run agent.Run
	r := h.clove("inspect", ref)
	if err := json.Unmarshal([]byte(r.stdout), &run); err != nil {
		h.t.Fatalf("inspect %s: %v\n%s%s", ref, err, r.stdout, r.stderr)
	}
	return run
}

// inspectRunning is inspect for a foreground run whose output was read: its start may be
// stored a little after that.
func (h *host) inspectRunning(ref string) agent.Run {
	h.t.Helper()
	for deadline := time.Now().Add(patience()); ; time.Sleep(10 * time.Millisecond) {
		run := h.inspect(ref)
		if run.State == agent.StateRunning {
			return run
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("%s is %s", ref, run.State)
		}
	}
}

// awaitExit waits for the end of a process that is not a child of the test.
func awaitExit(t *testing.T, pid int) {
	t.Helper()
	if !exits(t, pid, patience()) {
		t.Fatalf("process %d does not end", pid)
	}
}

// exits reports whether a process ends within a time.
func exits(t *testing.T, pid int, within time.Duration) bool {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return true
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	events := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for deadline := time.Now().Add(within); ; {
		left := time.Until(deadline).Milliseconds()
		n, err := unix.Poll(events, int(max(left, 0)))
		if err != nil && err != unix.EINTR {
			t.Fatal(err)
		}
		if n > 0 || left <= 0 {
			return n > 0
		}
	}
}

// keep is start without --rm: the run stays stored under its name.
func (h *host) keep(name string, flags []string, command ...string) *running {
	h.t.Helper()
	return h.start(append([]string{"--rm=false", "--name=" + name}, flags...), command...)
}

// TestTheKillOfCloveEndsTheAgent: even if the agent ignores all signals, and the next run
// cleans up. The control: it ignores everything else, and writes until then.
func TestTheKillOfCloveEndsTheAgent(t *testing.T) {
	h := newHost(t)
	life := newLifeline(t)
	r := h.keep("orphan", []string{"--seccomp=unconfined", life.flag()}, "sh", "-c", stubborn)
	r.send(unix.SIGTERM)
	life.beats()
	r.cmd.Process.Kill()
	r.cmd.Wait()
	life.gone(2 * time.Second)

	left := h.clove("check")
	if left.code != 1 || !strings.Contains(left.stdout, "orphan") {
		t.Errorf("control: check finds nothing to clean: exit %d\n%s%s", left.code, left.stdout, left.stderr)
	}
	if next := h.clove("run", "--rm", "--", "true"); next.code != 0 {
		t.Error(next.stderr)
	}
	record := h.inspect("orphan").Record
	if record == nil || record.Status != agent.StatusKilled || record.ExitCode != agent.ExitKilled || record.Error == nil ||
		!strings.Contains(record.Error.Message, "clove itself was killed") {
		t.Errorf("record: %+v", record)
	}
	if ps := h.clove("ps", "-a"); !strings.Contains(ps.stdout, "orphan") || !strings.Contains(ps.stdout, "lost") {
		t.Errorf("ps -a: %s", ps.stdout)
	}
}

// TestTheExitStatusOutlivesClove: the agent ends while clove is stopped, then clove is killed.
// The control is the test above, in which the agent had not ended.
func TestTheExitStatusOutlivesClove(t *testing.T) {
	h := newHost(t)
	for name, end := range map[string]struct {
		command string
		status  agent.Status
		code    int
	}{
		"exited":   {"exit 7", agent.StatusExited, 7},
		"signaled": {"kill -SEGV $$", agent.StatusSignaled, 139},
	} {
		t.Run(name, func(t *testing.T) {
			gate := filepath.Join(t.TempDir(), "gate")
			if err := os.Mkdir(gate, 0o755); err != nil {
				t.Fatal(err)
			}
			fifo := filepath.Join(gate, "fifo")
			if err := unix.Mkfifo(fifo, 0o666); err != nil {
				t.Fatal(err)
			}
			os.Chmod(fifo, 0o666)
			r := h.keep(name, []string{"-v=" + gate + ":/gate"}, "sh", "-c", "echo ready; read go </gate/fifo; "+end.command)
			if line := r.line(); line != "ready" {
				t.Fatalf("%q\n%s", line, &r.stderr)
			}
			init := h.inspectRunning(name).PID
			r.cmd.Process.Signal(unix.SIGSTOP)
			if err := unix.Waitid(unix.P_PID, r.cmd.Process.Pid, nil, unix.WSTOPPED, nil); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(fifo, []byte("go\n"), 0); err != nil {
				t.Fatal(err)
			}
			awaitExit(t, init)
			r.cmd.Process.Kill()
			r.cmd.Wait()
			if gc := h.clove("gc"); gc.code != 0 || !strings.Contains(gc.stdout, name) {
				t.Errorf("gc: exit %d\n%s%s", gc.code, gc.stdout, gc.stderr)
			}
			record := h.inspect(name).Record
			if record == nil || record.Status != end.status || record.ExitCode != end.code || record.Error != nil {
				t.Errorf("record: %+v", record)
			}
		})
	}
}

// TestAliveIsNotDead: gc and later runs do not touch a live agent.
func TestAliveIsNotDead(t *testing.T) {
	h := newHost(t)
	life := newLifeline(t)
	r := h.start([]string{life.flag()}, "sh", "-c", beating)
	if line := r.line(); line != "ready" {
		t.Fatalf("%q\n%s", line, &r.stderr)
	}
	for range 3 {
		h.clove("run", "--rm", "--", "true")
		if gc := h.clove("gc"); gc.code != 0 {
			t.Error(gc.stderr)
		}
	}
	life.beats()
	if check := h.clove("check"); check.code != 0 {
		t.Errorf("check: %s", check.stdout)
	}
	r.cmd.Process.Signal(unix.SIGTERM)
	if got := r.wait(); got.code != 143 {
		t.Errorf("exit %d\n%s", got.code, got.stderr)
	}
}
