// Package descriptor makes system calls on open descriptors: one while the file is
// guaranteed to stay open, flock(2), and the closing of inherited descriptors.
//
// It refuses to change the mode of a descriptor that other processes may share.
package descriptor

import (
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Use calls f with the descriptor of file, which stays open meanwhile and keeps its mode.
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

// Lock is flock(2) with the operation how, repeated after a signal.
func Lock(file *os.File, how int) error {
	for {
		if err := unix.Flock(int(file.Fd()), how); err != unix.EINTR {
			return err
		}
	}
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
