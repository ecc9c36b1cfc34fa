package notify

import (
	"errors"
	"io"
	"os"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The first thread stays with the test framework: it does not end with a function.
func init() { runtime.LockOSThread() }

// asked are the calls that the tests' filter hands over. Nothing else in this process makes
// them.
const asked = unix.SYS_GETXATTR

// listen puts a new thread under a filter that hands over one call, and has it do something.
// No privilege is needed. The thread ends with the function.
func listen(t *testing.T, do func()) *Listener {
	t.Helper()
	raw, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 0, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: asked, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_USER_NOTIF},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW},
	})
	if err != nil {
		t.Fatal(err)
	}
	var program []unix.SockFilter
	for _, r := range raw {
		program = append(program, unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K})
	}
	fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	loaded := make(chan int)
	go func() {
		runtime.LockOSThread() // for ever: the filter ends with the thread
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			t.Error(err)
		}
		fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&fprog)))
		if errno != 0 {
			t.Errorf("cannot listen: %v", errno)
		}
		loaded <- int(fd)
		do()
	}()
	fd := <-loaded
	if err := unix.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	l, err := New(os.NewFile(uintptr(fd), "listener"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// ask makes the call for a path.
func ask(path string) unix.Errno {
	name := append([]byte(path), 0)
	_, _, errno := unix.Syscall6(asked, uintptr(unsafe.Pointer(&name[0])), 0, 0, 77, 0, 0)
	return errno
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	got := make(chan unix.Errno, 1)
	l := listen(t, func() {
		for range 3 {
			got <- ask("/some/path")
		}
	})
	for _, row := range []struct {
		answer func(Call) error
		want   unix.Errno
	}{
		{func(c Call) error { return l.Refuse(c, unix.EXDEV) }, unix.EXDEV},
		{func(c Call) error { return l.Refuse(c, 0) }, 0},
		{l.Continue, unix.EFAULT}, // the kernel's own
	} {
		call, err := l.Receive()
		if err != nil || call.Number != asked || call.Args[3] != 77 || call.Thread == 0 {
			t.Fatalf("%+v, %v", call, err)
		}
		if text, err := l.Text(call, call.Args[0], 100); text != "/some/path" || err != nil {
			t.Errorf("path %q, %v", text, err)
		}
		if text, err := l.Text(call, call.Args[0], 4); text != "/som" || err != nil {
			t.Errorf("cut path %q, %v", text, err)
		}
		if _, err := l.Text(call, 1, 100); !errors.Is(err, unix.EFAULT) {
			t.Errorf("text from nowhere: %v", err)
		}
		if own, _ := os.Executable(); l.Program(call) != own {
			t.Errorf("program %q", l.Program(call))
		}
		if err := row.answer(call); err != nil {
			t.Error(err)
		}
		if errno := <-got; errno != row.want {
			t.Errorf("errno %v, want %v", errno, row.want)
		}
		if l.Valid(call) {
			t.Error("an answered call is valid")
		}
		if _, err := l.Text(call, call.Args[0], 4); !errors.Is(err, errGone) {
			t.Errorf("text of an answered call: %v", err)
		}
		if err := l.Refuse(call, unix.EPERM); err != nil {
			t.Errorf("a second answer: %v", err)
		}
	}
	if _, err := l.Receive(); err != io.EOF {
		t.Errorf("when the thread has ended: %v", err)
	}
}

// A listener that is closed leaves the call refused, the one that waits and the next.
func TestClosedListenerRefuses(t *testing.T) {
	t.Parallel()
	got := make(chan unix.Errno, 2)
	l := listen(t, func() { got <- ask("/a"); got <- ask("/b") })
	if _, err := l.Receive(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { _, err := l.Receive(); ended <- err }()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if errno := <-got; errno != unix.ENOSYS {
			t.Errorf("%v", errno)
		}
	}
	if err := <-ended; err != io.EOF {
		t.Errorf("a receiver of a closed listener: %v", err)
	}
}

func TestReceiveGivesUp(t *testing.T) {
	t.Parallel()
	release := make(chan bool)
	l := listen(t, func() { <-release; ask("/a") })
	if _, err := l.ReceiveWithin(time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v", err)
	}
	close(release)
	call, err := l.Receive()
	if err != nil || l.Refuse(call, unix.EPERM) != nil {
		t.Errorf("%v", err)
	}
}
