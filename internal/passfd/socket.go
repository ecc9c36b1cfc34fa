package passfd

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Pair makes a connection of a type of socket(2), SOCK_STREAM or SOCK_SEQPACKET:
// one side, and the other for a process that inherits it. They are files, because
// package net costs clove-init start time and memory.
func Pair(kind int) (ours, inherited *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	inherited = os.NewFile(uintptr(fds[1]), "inherited")
	if ours, err = New(fds[0]); err != nil {
		inherited.Close()
	}
	return ours, inherited, err
}

// New takes over the socket fd, and closes it on failure. It makes it non-blocking,
// so that there are deadlines and Close ends a Receive, and close-on-exec.
func New(fd int) (*os.File, error) {
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), "socket"), nil
}

// CloseSend says that nothing more comes: the other side sees io.EOF behind the
// last message, and its own messages can still be received.
func CloseSend(socket *os.File) error {
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = unix.Shutdown(int(fd), unix.SHUT_WR) })
	return errors.Join(err, failed)
}
