//go:build root

package integration

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/integration/probe"
)

// meeting looks for objects by which processes of one host can find each other.
const meeting = `
import ctypes, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
name, key, pid = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
try:
    socket.socket(socket.AF_UNIX).connect("\0" + name); print("abstract socket")
except OSError: pass
if libc.shmget(key, 0, 0) >= 0: print("shared memory")
if libc.msgget(key, 0) >= 0: print("message queue")
if libc.semget(key, 0, 0) >= 0: print("semaphores")
if libc.mq_open(("/" + name).encode(), os.O_RDWR) >= 0: print("posix queue")
try:
    os.kill(pid, 0); print("process")
except OSError: pass
`

// TestAgentsMeetNobody: they find neither the host's processes nor, for the same reason,
// another agent's.
func TestAgentsMeetNobody(t *testing.T) {
	h := newHost(t)
	name, key := fmt.Sprintf("clove-meeting-%d", os.Getpid()), 0x636c0000|os.Getpid()&0xffff
	listener, err := net.Listen("unix", "@"+name)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	makeIPC(t, name, key)
	args := []string{"-c", meeting, name, fmt.Sprint(key), victim(t)}
	const all = "abstract socket\nshared memory\nmessage queue\nsemaphores\nposix queue\nprocess\n"
	if out, err := exec.Command("python3", args...).Output(); err != nil || string(out) != all {
		t.Fatalf("control: %v, %q", err, out)
	}
	for _, flags := range [][]string{nil, {"--user=root"}} {
		h.agent(flags, append([]string{"python3"}, args...)...).want(t, agent.StatusExited, 0, "")
	}
	// Two agents: the first one makes every kind of object, and the second one finds none.
	first := h.start(nil, "python3", "-c", `
import ctypes, os, socket, sys
libc = ctypes.CDLL(None)
name, key = sys.argv[1], int(sys.argv[2])
s = socket.socket(socket.AF_UNIX); s.bind("\0" + name); s.listen()
made = libc.shmget(key, 4096, 0o1666), libc.msgget(key, 0o1666), libc.semget(key, 1, 0o1666)
q = libc.mq_open(("/" + name).encode(), os.O_RDWR | os.O_CREAT, 0o666, None)
print(min(made + (q,)) >= 0, flush=True)
sys.stdin.read()`, name+"-2", fmt.Sprint(key+1))
	if line := first.line(); line != "True" {
		t.Errorf("the first agent could not make them: %s", line)
	}
	second := []string{"python3", "-c", meeting, name + "-2", fmt.Sprint(key + 1), "99999"}
	h.agent(nil, second...).want(t, agent.StatusExited, 0, "")
	if end := first.wait(); end.code != 0 {
		t.Errorf("exit %d\n%s", end.code, end.stderr)
	}
}

// makeIPC makes one object of each kind in the host's namespace, until the end of the test.
func makeIPC(t *testing.T, name string, key int) {
	t.Helper()
	must := func(what string, errno unix.Errno) {
		if errno != 0 {
			t.Fatalf("cannot make %s: %v", what, errno)
		}
	}
	const mode = unix.IPC_CREAT | 0o666
	shm, _, errno := unix.Syscall(unix.SYS_SHMGET, uintptr(key), 4096, mode)
	must("shared memory", errno)
	t.Cleanup(func() { unix.Syscall(unix.SYS_SHMCTL, shm, unix.IPC_RMID, 0) })
	queue, _, errno := unix.Syscall(unix.SYS_MSGGET, uintptr(key), mode, 0)
	must("a message queue", errno)
	t.Cleanup(func() { unix.Syscall(unix.SYS_MSGCTL, queue, unix.IPC_RMID, 0) })
	sem, _, errno := unix.Syscall(unix.SYS_SEMGET, uintptr(key), 1, mode)
	must("semaphores", errno)
	t.Cleanup(func() { unix.Syscall(unix.SYS_SEMCTL, sem, 0, unix.IPC_RMID) })
	path, err := unix.BytePtrFromString(name) // the system call takes the name without the slash
	if err != nil {
		t.Fatal(err)
	}
	fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(path)), unix.O_RDWR|unix.O_CREAT, 0o666, 0, 0, 0)
	must("a posix queue", errno)
	unix.Close(int(fd))
	t.Cleanup(func() { unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(path)), 0, 0) })
}

// holdKey joins a new session keyring, adds a key to it, and executes the command of its
// arguments.
var holdKey = fmt.Sprintf(`
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
assert libc.syscall(%d, 1, None, 0, 0, 0) > 0
assert libc.syscall(%d, b"user", b"clove-secret", b"x", 1, -3) > 0
os.execvp(sys.argv[1], sys.argv[1:])
`, unix.SYS_KEYCTL, unix.SYS_ADD_KEY)

// findKey searches for that key by its name.
var findKey = fmt.Sprintf(`
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print("found" if libc.syscall(%d, b"user", b"clove-secret", None, 0) > 0 else ctypes.get_errno())
`, unix.SYS_REQUEST_KEY)

// TestTheCallersKeysStayOutside: also without a filter that blocks the search, because the
// session keyring is another one.
func TestTheCallersKeysStayOutside(t *testing.T) {
	h := newHost(t)
	control, err := exec.Command("python3", "-c", holdKey, "python3", "-c", findKey).Output()
	if err != nil || string(control) != "found\n" {
		t.Fatalf("control: %v, %q", err, control)
	}
	for profile, answer := range map[string]string{"standard": fmt.Sprintln(int(unix.EPERM)), "unconfined": fmt.Sprintln(int(unix.ENOKEY))} {
		clove := h.command(t.Context(), "run", "--rm", "--user=root", "--seccomp", profile, "--", "python3", "-c", findKey)
		cmd := exec.CommandContext(t.Context(), "python3", append([]string{"-c", holdKey}, clove.Args...)...)
		cmd.Env = clove.Env
		if out, err := cmd.Output(); err != nil || string(out) != answer {
			t.Errorf("%s: %v, %q, want %q", profile, err, out, answer)
		}
	}
}

// TestUnconfinedIsWeakerAndSaysSo: without the filter the other protections remain, and the
// record names what is missing.
func TestUnconfinedIsWeakerAndSaysSo(t *testing.T) {
	h := newHost(t)
	program := probeProgram(t)
	var commands []probe.Command
	for _, c := range probe.Commands("1", "/tmp") {
		switch c.Args[0] {
		case "chroot", "mknod", "setns", "other", "read", "write":
			commands = append(commands, c)
		}
	}
	for _, user := range []string{"agent", "root"} {
		flags := withProbe(program, "--seccomp=unconfined", "--user="+user)
		r := h.agent(flags, "sh", "-c", probeScript(probeInside, commands)+probeInside+" unshare user\n")
		inside := attacked(t, []byte(r.stdout))
		if !inside["unshare user"].OK {
			t.Errorf("control: %s: the filter is on: %+v", user, inside["unshare user"])
		}
		for _, c := range commands {
			for _, a := range c.Attacks {
				// mknod of a whiteout (the mark of a deleted file) needs no privilege.
				if inside[a.Name].OK && a.Name != "mknod whiteout" {
					t.Errorf("%s: %s succeeds: %s", user, a.Name, inside[a.Name].Detail)
				}
			}
		}
		if _, on := r.record.Enforced[agent.ControlSeccomp]; on || len(r.record.Unenforced) != 1 || r.record.Unenforced[0] != agent.ControlSeccomp {
			t.Errorf("%s: enforced %v, unenforced %v", user, r.record.Enforced, r.record.Unenforced)
		}
	}
}
