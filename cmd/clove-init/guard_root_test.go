//go:build root

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestInitCannotBeSignalled: neither the agent nor root of the sandbox with CAP_KILL, which
// has the permission, can signal PID 1. The control: the same kill ends another process of PID
// 1's ids.
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

// TestInitIsUnreadable: the agent can read nothing of PID 1. The control: the agent reads the
// same files of itself.
func TestInitIsUnreadable(t *testing.T) {
	// Some files can be opened by their owner and fail when read; address 0 of the memory is
	// not mapped; a folder can only be opened.
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
			got, isRoots := strings.CutSuffix(got, "owner 0\n") // files of a process that is not dumpable belong to root
			if own := strings.ReplaceAll(strings.TrimSpace(got), "self ", ""); own != strings.ReplaceAll(want, " ", "\n") || !isRoots {
				t.Errorf("of PID 1 and, as a control, of itself it can read %q", got)
			}
		})
	}
}

// TestInitsLimitsAreItsOwn: root of the sandbox can take PID 1's user and group, and still
// cannot change its limits. The control is another process of the same ids.
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

// TestInitKeepsNoDescriptor: descriptors that the launch leaked are closed in PID 1 too.
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

// TestInitHasThreadsInReserve: all threads that PID 1 may need exist when the agent starts,
// because later the agent may have used up the pids limit. One more is the monitor of Go's
// runtime.
func TestInitHasThreadsInReserve(t *testing.T) {
	b := start(t, shell("echo ready; read line"))
	b.started()
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", b.process.Process.Pid))
	if check(t, err); len(threads) < spares+2 {
		t.Errorf("%d threads", len(threads))
	}
}

// TestInitSignalDispositions: every signal is ignored where possible, except SIGCHLD, whose
// default has the same effect, and SIGURG, which Go's runtime uses.
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
