//go:build root

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestInitCannotBeSignalled: neither by the agent, nor by root of the sandbox
// with CAP_KILL, for whom the permission is no obstacle. The control is a
// process of PID 1's own id range that the same kill ends.
func TestInitCannotBeSignalled(t *testing.T) {
	const script = `
		for signal in $(seq 1 64); do
			[ $signal = 32 ] || [ $signal = 33 ] || kill -$signal 1 2>/dev/null && sent="$sent $signal"
		done
		sleep 1000 & kill -SEGV $!; wait $!; echo control $?
		echo sent $sent`
	for name, c := range map[string]struct {
		uid  uint32
		caps []string
		sent bool
	}{"agent": {agentUID, nil, false}, "root with CAP_KILL": {0, []string{"CAP_KILL"}, true}} {
		t.Run(name, func(t *testing.T) {
			orders := shell(script)
			orders.UID, orders.Caps = c.uid, c.caps
			got := runs(t, orders)
			if !strings.Contains(got, "control 139\n") {
				t.Errorf("the control lives: %q", got)
			}
			if sent := strings.Contains(got, " 9 "); sent != c.sent {
				t.Errorf("permission to send %v, want %v: %q", sent, c.sent, got)
			}
		})
	}
}

// TestInitIsUnreadable: the agent sees nothing of PID 1. The control reads the
// same of itself.
func TestInitIsUnreadable(t *testing.T) {
	// Some files open for anybody who owns them and refuse to be read; the
	// memory has no byte 0; a folder can only be opened.
	const script = `
		readable() { [ "$(head -c 1 $1 2>/dev/null | wc -c)" = 1 ]; }
		for pid in 1 $$; do
			for file in environ maps io exe fdinfo/2; do readable /proc/$pid/$file && echo $pid $file; done
			for file in mem root/etc cwd/etc; do head -c 0 /proc/$pid/$file 2>/dev/null && echo $pid $file; done
		done | sed "s/^$$ /self /"
		stat -c 'owner %u' /proc/1/environ`
	for _, uid := range []uint32{agentUID, 0} {
		t.Run(fmt.Sprint("uid ", uid), func(t *testing.T) {
			orders := shell(script)
			orders.UID = uid
			got := runs(t, orders)
			want := "environ maps io exe fdinfo/2 mem root/etc cwd/etc"
			got, isRoots := strings.CutSuffix(got, "owner 0\n") // what is not dumpable is root's
			if own := strings.ReplaceAll(strings.TrimSpace(got), "self ", ""); own != strings.ReplaceAll(want, " ", "\n") || !isRoots {
				t.Errorf("of PID 1 and, as a control, of itself it can read %q", got)
			}
		})
	}
}

// TestInitsLimitsAreItsOwn: root of the sandbox can have the user and group of
// PID 1, and that is not enough. The control is a process of the same ids.
func TestInitsLimitsAreItsOwn(t *testing.T) {
	orders := shell(`exec python3 -c '
import os, resource
os.setresgid(65533, 65533, 65533)
os.setresuid(65533, 65533, 65533)
child = os.fork()
if child == 0: os.read(0, 1)
def change(pid):
    try: resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, 0))
    except PermissionError: return "refused"
    return "changed"
print(change(child), change(1))
'`)
	orders.UID, orders.GID, orders.Caps = 0, 0, []string{"CAP_SETUID", "CAP_SETGID"}
	if got := runs(t, orders); got != "changed refused\n" {
		t.Errorf("got %q", got)
	}
}

// TestInitKeepsNoDescriptor: what the launch leaked is closed in PID 1 too.
func TestInitKeepsNoDescriptor(t *testing.T) {
	b := start(t, shell("echo ready; read line"))
	b.started()
	b.expect("ready")
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", b.process.Process.Pid))
	check(t, err)
	for _, entry := range entries {
		target, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", b.process.Process.Pid, entry.Name()))
		check(t, err)
		if strings.HasSuffix(target, "/clove-init") {
			t.Errorf("descriptor %s is still %s", entry.Name(), target)
		}
	}
}

// TestInitHasThreadsInReserve: all that it could need are there when the agent
// starts; later the agent may have taken what its pids limit allows. One more
// is the runtime's monitor.
func TestInitHasThreadsInReserve(t *testing.T) {
	b := start(t, shell("echo ready; read line"))
	b.started()
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", b.process.Process.Pid))
	if check(t, err); len(threads) < spares+2 {
		t.Errorf("%d threads", len(threads))
	}
}

// TestInitSignalDispositions: every signal that can be is ignored, but for
// SIGCHLD, whose default is the same, and SIGURG, which stays Go's.
func TestInitSignalDispositions(t *testing.T) {
	b := start(t, shell("echo ready; read line"))
	b.started()
	b.expect("ready")
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.process.Process.Pid))
	check(t, err)
	expectFields(t, fields(string(text)), map[string]string{
		"SigIgn": fmt.Sprintf("%016x", ^uint64(1<<(unix.SIGURG-1)|1<<(unix.SIGCHLD-1)|1<<(unix.SIGKILL-1)|1<<(unix.SIGSTOP-1))), "SigCgt": fmt.Sprintf("%016x", 1<<(unix.SIGURG-1)),
		"NSpid": fmt.Sprint(b.process.Process.Pid, " 1")})
}
