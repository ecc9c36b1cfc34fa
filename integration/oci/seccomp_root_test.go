//go:build root

package oci

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// filter has one rule for mkdir and allows everything else.
func filter(action specs.LinuxSeccompAction, listener string) func(*specs.Spec) {
	return func(s *specs.Spec) {
		s.Linux.Seccomp = &specs.LinuxSeccomp{
			DefaultAction: specs.ActAllow, ListenerPath: listener, ListenerMetadata: "what the engine wants back",
			Syscalls: []specs.LinuxSyscall{{Names: []string{"mkdir", "mkdirat"}, Action: action}},
		}
		if listener == "" {
			s.Linux.Seccomp.ListenerMetadata = ""
		}
	}
}

const makeFolder = "mkdir /dev/shm/x 2>&1 && echo made || true"

func TestAFilterHolds(t *testing.T) {
	r := newRuntime(t)
	try(t, r, map[string]matter{
		"errno": {makeFolder, filter(specs.ActErrno, ""), "made", "mkdir: can't create directory '/dev/shm/x': Operation not permitted"},
		"later process too": {"sh -c '" + makeFolder + "'", filter(specs.ActErrno, ""), "made",
			"mkdir: can't create directory '/dev/shm/x': Operation not permitted"},
	})
	id := waiting(t, r, filter(specs.ActErrno, ""))
	if got := r.Do("exec", id, "mkdir", "/dev/shm/x"); got.Status != 1 {
		t.Errorf("an exec's process: %+v", got)
	}
}

// The kernel's structures and requests, linux/seccomp.h; unused fields have no name.
type notification struct {
	id  uint64
	pid uint32
	_   [68]byte
}

type answer struct {
	id    uint64
	_     int64
	errno int32
	_     uint32
}

const (
	notifReceive = 0xc0502100
	notifSend    = 0xc0182101
)

func request[T any](t *testing.T, listener int, number uintptr, argument *T) {
	t.Helper()
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), number, uintptr(unsafe.Pointer(argument))); errno != 0 {
		t.Error(errno)
	}
}

// TestAListenerDecides: the engine's program gets the container's state and the filter's
// descriptor, and its answer is the result of the system call.
func TestAListenerDecides(t *testing.T) {
	r := newRuntime(t)
	path, socket := listen(t, r, "unix", "listener")
	shared := directory(t, r)
	bundle := r.Bundle("exec mkdir /tmp/x 2>/tmp/said", bind(shared, "/tmp"), filter(specs.ActNotify, path))
	r.Must("create", "--bundle", bundle, "asking")
	t.Cleanup(func() { r.Must("delete", "--force", "asking") })
	listener, state := notified(t, socket)
	defer listener.Close()
	if state.Metadata != "what the engine wants back" || state.State.ID != "asking" || state.State.Bundle != bundle || state.Fds[0] != specs.SeccompFdName {
		t.Errorf("the program is told %+v", state)
	}
	wait := background(t, r, nil, nil, "start", "asking")
	if ready, err := poll(listener); !ready {
		t.Fatalf("no notification came: %v", err)
	}
	var asked notification
	request(t, int(listener.Fd()), notifReceive, &asked)
	if int(asked.pid) != state.Pid {
		t.Errorf("%d asks, not %d", asked.pid, state.Pid)
	}
	request(t, int(listener.Fd()), notifSend, &answer{id: asked.id, errno: -int32(unix.EROFS)})
	if status := wait(); status != 0 {
		t.Errorf("start: status %d", status)
	}
	r.Await("the end", func() bool { return r.State("asking").Status == specs.StateStopped })
	if text, err := os.ReadFile(filepath.Join(shared, "said")); !strings.Contains(string(text), "Read-only file system") {
		t.Errorf("mkdir says %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(shared, "x")); !os.IsNotExist(err) {
		t.Errorf("the folder: %v", err)
	}
}

// notified returns what comes over the connection to a filter's listener.
func notified(t *testing.T, socket *os.File) (listener *os.File, state specs.ContainerProcessState) {
	t.Helper()
	if ready, err := poll(socket); !ready {
		t.Fatalf("no connection came: %v", err)
	}
	connection, _, err := unix.Accept4(int(socket.Fd()), unix.SOCK_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(connection)
	text, fds := message(t, connection)
	if err := json.Unmarshal([]byte(text), &state); err != nil || len(fds) != 1 || len(state.Fds) != 1 {
		t.Fatalf("%s, %d descriptors, %v", text, len(fds), err)
	}
	return os.NewFile(uintptr(fds[0]), "listener"), state
}
