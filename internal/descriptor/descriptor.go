// Package descriptor makes system calls on open descriptors: one while the file is
// guaranteed to stay open, flock(2), openat2(2), the wait for a connection, and the closing of
// inherited descriptors.
//
// It refuses to change the mode of a descriptor that other processes may share.
package descriptor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Use calls f with the descriptor of file, which stays open meanwhile and keeps its mode:
// File.Fd would make it blocking, and deadlines and Close would not end its reads any more.
func Use(file syscall.Conn, f func(fd int) error) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}

// Connected waits until a socket whose connect(2) returned EINPROGRESS has a peer. The
// error is the connection's errno, or that of ctx; the socket cannot be used then.
func Connected(ctx context.Context, socket *os.File) error {
	// A deadline in the past ends the Write below.
	stop := context.AfterFunc(ctx, func() { _ = socket.SetWriteDeadline(time.Unix(1, 0)) })
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		code, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
		if failed = err; err == nil && code != 0 {
			failed = unix.Errno(code)
		}
		// The poller may wake early. SO_ERROR is then 0, but there is no peer yet.
		_, err = unix.Getpeername(int(fd))
		return failed != nil || err == nil
	})
	if !stop() {
		return ctx.Err() // even if connected: the deadline is set or will be
	}
	return errors.Join(err, failed)
}

// Lock is flock(2) with the operation how, repeated after a signal.
func Lock(file *os.File, how int) error {
	for {
		if err := unix.Flock(int(file.Fd()), how); err != unix.EINTR {
			return err
		}
	}
}

// LockWithin is Lock that waits no longer than ctx. It queues in the kernel, which wakes a waiter
// as soon as the lock is free; with polling, chance decides which process is next. A wait there
// cannot be cancelled: one that took too long goes on with a descriptor of its own, and releases the
// lock as soon as it has it.
func LockWithin(ctx context.Context, file *os.File, how int) error {
	// A lock that is free needs neither goroutine nor thread.
	if err := Lock(file, how|unix.LOCK_NB); err != unix.EWOULDBLOCK {
		return err
	}
	own, err := duplicate(file)
	if err != nil {
		return err
	}
	locked := make(chan error, 1)
	var decided atomic.Bool // by the first of the lock and the end of ctx
	go func() {
		defer own.Close()
		err := Lock(own, how)
		if !decided.CompareAndSwap(false, true) && err == nil {
			err = Lock(own, unix.LOCK_UN)
		}
		locked <- err
	}()
	select {
	case err := <-locked:
		return err
	case <-ctx.Done():
		if decided.CompareAndSwap(false, true) {
			return ctx.Err()
		}
		return <-locked
	}
}

// duplicate returns another descriptor of the same open file.
func duplicate(file *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), file.Name()), nil
}

// Exclusively runs f while no other process runs one for the same directory. f must be
// short: the others wait.
func Exclusively(dir string, f func() error) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := Lock(file, unix.LOCK_EX); err != nil {
		return fmt.Errorf("cannot lock %s: %w", dir, err)
	}
	return f()
}

// CloseInherited closes the descriptors above last that are not close-on-exec. What Go
// opened is close-on-exec, so the others come from the process that executed this one.
func CloseInherited(last int) error {
	folder, err := os.Open("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("cannot list descriptors: %w", err)
	}
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	if err != nil {
		return fmt.Errorf("cannot list descriptors: %w", err)
	}
	for _, name := range names {
		fd, err := strconv.Atoi(name)
		if err != nil || fd <= last {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			unix.Close(fd)
		}
	}
	return nil
}

// Bounds of the repetitions of Openat2. A process that renames files without end must not hold its caller.
const (
	resolveAtOnce = 64
	resolvePause  = 100 * time.Microsecond
	resolveMost   = 1000 // then it has taken a tenth of a second
)

// Openat2 is openat2(2), repeated after a signal and after EAGAIN: the kernel returns that if a rename or a mount
// anywhere on the host happens at the same time, because it cannot tell then whether ".." stays inside. A process that
// renames may have lost its processor in the middle, so later repetitions wait for a moment. The descriptor is the caller's.
func Openat2(dir int, path string, how *unix.OpenHow) (fd int, err error) {
	for tries := range resolveMost {
		if fd, err = unix.Openat2(dir, path, how); err != unix.EAGAIN && err != unix.EINTR {
			break
		}
		if tries >= resolveAtOnce {
			time.Sleep(resolvePause)
		}
	}
	return fd, err
}
