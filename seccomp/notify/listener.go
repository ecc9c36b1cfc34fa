package notify

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Call is a call that waits for its answer: struct seccomp_notif of linux/seccomp.h.
type Call struct {
	ID     uint64
	Thread uint32 // of the caller, as this process sees it; 0: it does not see it
	_      uint32 // flags, always 0
	Number int32
	Arch   uint32
	_      uint64 // where in the program
	Args   [6]uint64
}

// answer is struct seccomp_notif_resp.
type answer struct {
	id    uint64
	value int64
	errno int32 // negative
	flags uint32
}

// Listener receives the calls of one filter. One goroutine at a time may use it.
type Listener struct {
	file *os.File
	raw  syscall.RawConn
}

// New takes over the file, closing it on failure.
func New(file *os.File) (*Listener, error) {
	raw, err := file.SyscallConn()
	if err == nil {
		// Without its own deadline support, the file would block a thread in Receive, and
		// Close could not end that.
		err = file.SetReadDeadline(time.Time{})
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot use the listener: %w", err)
	}
	l := &Listener{file, raw}
	l.setSyncWakeup()
	return l, nil
}

// setSyncWakeup enables SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP: the kernel wakes each side on the
// processor of the other, since one of them always waits. Kernels before 6.6 refuse, and then
// an answer only takes longer.
func (l *Listener) setSyncWakeup() {
	_ = l.raw.Control(func(fd uintptr) {
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, fd, unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	})
}

// Close ends Receive. The kernel answers ENOSYS to every call that waits or comes later.
func (l *Listener) Close() error { return l.file.Close() }

// Receive waits for a call. io.EOF: the last process under the filter has ended, or Close
// was called.
func (l *Listener) Receive() (call Call, err error) {
	var failed error
	err = l.raw.Read(func(fd uintptr) bool {
		var done bool
		call, done, failed = receive(int(fd))
		return done
	})
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return Call{}, err
	}
	if err != nil { // closed
		return Call{}, io.EOF
	}
	return call, failed
}

// ReceiveWithin is Receive that gives up after a time.
func (l *Listener) ReceiveWithin(patience time.Duration) (Call, error) {
	if err := l.file.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return Call{}, err
	}
	call, err := l.Receive()
	return call, errors.Join(err, l.file.SetReadDeadline(time.Time{}))
}

// receive takes a call if one waits; done is false if none does. It asks poll(2) first,
// because the ioctl itself would wait, and on older kernels for ever.
func receive(fd int) (call Call, done bool, err error) {
	for {
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(ready, 0)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return call, true, os.NewSyscallError("poll", err)
		case n == 0:
			return call, false, nil
		case ready[0].Revents&unix.POLLIN == 0: // POLLHUP, from Linux 5.9 on
			return call, true, io.EOF
		}
		call = Call{} // the kernel takes no other
		switch err := control(fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&call)); {
		case err == nil:
			return call, true, nil
		case err != unix.EINTR && err != unix.ENOENT: // ENOENT: the caller was killed meanwhile
			return call, true, os.NewSyscallError("receive a call", err)
		}
	}
}

// Refuse answers with an error number; 0 is success, with the result 0.
func (l *Listener) Refuse(call Call, errno unix.Errno) error {
	return l.send(answer{id: call.ID, errno: -int32(errno)})
}

// Continue has the kernel carry the call out. The package's comment says when that is safe.
func (l *Listener) Continue(call Call) error {
	return l.send(answer{id: call.ID, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE})
}

// send treats a caller that is gone as answered.
func (l *Listener) send(a answer) error {
	err := l.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&a))
	if err == unix.ENOENT {
		return nil
	}
	return os.NewSyscallError("answer a call", err)
}

// Valid reports whether the caller still waits for the answer.
func (l *Listener) Valid(call Call) bool {
	return l.ioctl(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&call.ID)) == nil
}

func (l *Listener) ioctl(request uintptr, argument unsafe.Pointer) (err error) {
	failed := l.raw.Control(func(fd uintptr) {
		for {
			if err = control(int(fd), request, argument); err != unix.EINTR {
				return
			}
		}
	})
	if failed != nil {
		return failed
	}
	return err
}

func control(fd int, request uintptr, argument unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(argument)); errno != 0 {
		return errno
	}
	return nil
}

// errGone is what reading from a caller that does not wait any more fails with.
var errGone = errors.New("the caller is gone")
