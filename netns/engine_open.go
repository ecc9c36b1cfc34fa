package netns

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/pidfd"
)

// OpenProcess opens the network namespace of an OCI container's process, and a pidfd of the
// process, which the caller closes. start is the process's start time in clock ticks since
// boot (proc_pid_stat(5), field 22), to detect a reused pid.
func OpenProcess(pid int, start uint64) (*Namespace, *pidfd.Process, error) {
	process, err := pidfd.OpenStarted(pid, start)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot open process %d: %w", pid, err)
	}
	n, err := OpenEngine(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err == nil && process.Ended() { // still alive, so the pid was not reused before the namespace was opened
		n.Close()
		err = fmt.Errorf("process %d has ended", pid)
	}
	if err != nil {
		process.Close()
		return nil, nil, err
	}
	return n, process, nil
}

// OpenEngine opens a network namespace that an engine made. This process's user namespace
// must own it: over a namespace that the container's user namespace owns, the container's
// root has CAP_NET_ADMIN and could remove every rule.
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

// checkOwner compares the owning user namespace (ioctl_nsfs(2)) with this process's own.
func (n *Namespace) checkOwner() error {
	fd, err := unix.IoctlRetInt(int(n.file.Fd()), unix.NS_GET_USERNS)
	// The kernel shows the owner only to processes in that user namespace or above it.
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

// Identity identifies the namespace by device and inode, which are unique while it exists.
func (n *Namespace) Identity() (string, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(n.file.Fd()), &stat); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d:%d", stat.Dev, stat.Ino), nil
}

// Socket makes a socket inside for the gate's outside connections. Its mark passes the
// EnginePlan's rules; the engine's own rules still apply.
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

// Owns is HostOwns inside the namespace.
func (n *Namespace) Owns(a netip.Addr) (owns bool, err error) {
	err = n.do(func() error { owns, err = HostOwns(a); return err })
	return owns, err
}
