package netns

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/pidfd"
)

// OpenProcess holds the network namespace of a process of an engine's, and the
// process by a pidfd, which is the caller's to close. A number that has come to
// mean another process is told by start, the process's own in clock ticks since
// boot (proc_pid_stat(5), field 22).
func OpenProcess(pid int, start uint64) (*Namespace, *pidfd.Process, error) {
	process, err := pidfd.OpenStarted(pid, start)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot open process %d: %w", pid, err)
	}
	n, err := OpenEngine(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err == nil && process.Ended() { // alive now, it was the same process all the time
		n.Close()
		err = fmt.Errorf("process %d has ended", pid)
	}
	if err != nil {
		process.Close()
		return nil, nil, err
	}
	return n, process, nil
}

// OpenEngine holds a network namespace that an engine made and this process's
// user namespace owns: over one of the container's own, its root would have
// CAP_NET_ADMIN.
func OpenEngine(path string) (*Namespace, error) {
	n, err := Open(path)
	if err != nil {
		return nil, err
	}
	if err := n.checkOwner(); err != nil {
		n.Close()
		return nil, fmt.Errorf("cannot use network namespace %s: %w", path, err)
	}
	return n, nil
}

func (n *Namespace) checkOwner() error {
	fd, err := unix.IoctlRetInt(int(n.file.Fd()), unix.NS_GET_USERNS)
	if errors.Is(err, unix.EPERM) {
		return errors.New("it belongs to a user namespace that is not this process's")
	}
	if err != nil {
		return fmt.Errorf("cannot tell whose it is: %w", err)
	}
	owner := os.NewFile(uintptr(fd), "owner")
	defer owner.Close()
	its, err := owner.Stat()
	if err != nil {
		return err
	}
	own, err := os.Stat("/proc/self/ns/user")
	if err == nil && !os.SameFile(its, own) {
		err = errors.New("it belongs to the container's user namespace, whose root may change every rule")
	}
	return err
}

// Identity names the namespace among all that exist now.
func (n *Namespace) Identity() (string, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(n.file.Fd()), &stat); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d:%d", stat.Dev, stat.Ino), nil
}

// Socket makes a socket inside for the gate's outside leg: what it sends passes
// an EnginePlan's rules, and then the engine's own.
func (n *Namespace) Socket(family, kind int) (fd int, err error) {
	err = n.do(func() error {
		if fd, err = unix.Socket(family, kind, 0); err != nil {
			return os.NewSyscallError("socket", err)
		}
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, int(markGate)); err != nil {
			unix.Close(fd)
			return os.NewSyscallError("setsockopt", err)
		}
		return nil
	})
	if err != nil {
		return -1, err
	}
	return fd, nil
}

// Owns is HostOwns for the namespace.
func (n *Namespace) Owns(a netip.Addr) (owns bool, err error) {
	err = n.do(func() error { owns, err = HostOwns(a); return err })
	return owns, err
}
