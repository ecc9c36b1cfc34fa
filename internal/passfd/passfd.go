// Package passfd sends and receives descriptors over Unix sockets (unix(7),
// SCM_RIGHTS).
package passfd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Send is one sendmsg(2) of data and, with its first byte, of files, which stay the
// sender's. A stream may take less than all of the data: n says how much.
func Send(socket syscall.Conn, data []byte, files ...*os.File) (n int, err error) {
	return send(socket, data, files, func(raw syscall.RawConn, try func(fd uintptr) bool) error { return raw.Write(try) })
}

// TrySend is Send that does not wait: unix.EAGAIN where the socket is full. Unlike Send
// it also tries when the socket's write deadline has passed.
func TrySend(socket syscall.Conn, data []byte, files ...*os.File) (n int, err error) {
	return send(socket, data, files, func(raw syscall.RawConn, try func(fd uintptr) bool) error {
		return raw.Control(func(fd uintptr) { try(fd) })
	})
}

// send is one sendmsg(2), tried by with: again when the socket has room, or once.
func send(socket syscall.Conn, data []byte, files []*os.File, with func(syscall.RawConn, func(fd uintptr) bool) error) (n int, err error) {
	rights, err := rightsOf(files)
	if err != nil {
		return 0, err
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, err
	}
	failed := with(raw, func(fd uintptr) bool {
		n, err = retry(func() (int, error) { return unix.SendmsgN(int(fd), data, rights, nil, unix.MSG_NOSIGNAL) })
		return err != unix.EAGAIN
	})
	return n, errors.Join(failed, err)
}

// rightsOf never calls File.Fd, which would make the file blocking for all
// processes that share it.
func rightsOf(files []*os.File) ([]byte, error) {
	if len(files) == 0 {
		return nil, nil
	}
	fds := make([]int, 0, len(files))
	for _, file := range files {
		raw, err := file.SyscallConn()
		if err == nil {
			err = raw.Control(func(fd uintptr) { fds = append(fds, int(fd)) })
		}
		if err != nil {
			return nil, fmt.Errorf("cannot send descriptor: %w", err)
		}
	}
	return unix.UnixRights(fds...), nil
}

// Await waits until there is something to receive, or an error, which Receive returns.
func Await(socket syscall.Conn) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return
	}
	var first [1]byte
	_ = raw.Read(func(fd uintptr) bool {
		_, err := retry(func() (n int, err error) {
			n, _, err = unix.Recvfrom(int(fd), first[:], unix.MSG_PEEK) // the gate's filter has no poll(2)
			return n, err
		})
		return err != unix.EAGAIN
	})
}

// Receive is one recvmsg(2) into data, and of most descriptors at most, which are the
// caller's then, and closed on exec. Where more come, all are closed, so that no sender can
// fill the table. io.EOF: the other side is gone; os.ErrClosed: this one. The descriptors
// are closed on exec from the first moment (MSG_CMSG_CLOEXEC), so that no program that
// another goroutine starts inherits them.
func Receive(socket syscall.Conn, data []byte, most int) (n int, fds []int, err error) {
	control := make([]byte, unix.CmsgSpace(4*most))
	var length, flags int
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, nil, err
	}
	failed := raw.Read(func(fd uintptr) bool {
		n, err = retry(func() (n int, err error) {
			n, length, flags, _, err = unix.Recvmsg(int(fd), data, control, unix.MSG_CMSG_CLOEXEC)
			return n, err
		})
		return err != unix.EAGAIN
	})
	switch {
	case errors.Is(failed, os.ErrDeadlineExceeded):
		return 0, nil, failed
	case failed != nil:
		return 0, nil, os.ErrClosed
	case err == nil && n == 0, errors.Is(err, unix.ECONNRESET): // its last bytes were read, or some of ours were not
		return 0, nil, io.EOF
	case err != nil:
		return 0, nil, os.NewSyscallError("recvmsg", err)
	}
	fds, err = descriptors(control[:length])
	if err == nil && (flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 || len(fds) > most) {
		err = errors.New("it is too long, or brings too many descriptors")
	}
	if err != nil {
		closeAll(fds)
		return 0, nil, err
	}
	return n, fds, nil
}

// descriptors are all that came: the kernel has installed them already, and they stay open
// until they are closed.
func descriptors(control []byte) (fds []int, err error) {
	messages, err := unix.ParseSocketControlMessage(control)
	for i := range messages {
		if rights, err := unix.ParseUnixRights(&messages[i]); err == nil { // else nothing to close
			fds = append(fds, rights...)
		}
	}
	return fds, err
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// retry repeats a call that a signal interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != unix.EINTR {
			return n, err
		}
	}
}
