package netns

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// OpenProcess holds the network namespace of a process of an engine's, and the
// process by a pidfd, which is the caller's to close. A number that has come to
// mean another process is told by start, the process's own in clock ticks since
// boot (proc_pid_stat(5), field 22).
func OpenProcess(pid int, start uint64) (*Namespace, *os.File, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot open process %d: %w", pid, err)
	}
	process := os.NewFile(uintptr(fd), "process")
	n, err := openOf(process, pid, start)
	if err != nil {
		process.Close()
		return nil, nil, err
	}
	return n, process, nil
}

func openOf(process *os.File, pid int, start uint64) (*Namespace, error) {
	began, err := StartTime(pid)
	if err != nil {
		return nil, err
	}
	if began != start {
		return nil, fmt.Errorf("process %d is another one: it began at %d, not at %d", pid, began, start)
	}
	n, err := OpenEngine(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return nil, err
	}
	// Alive now, it was the same process all the time.
	if err := unix.PidfdSendSignal(int(process.Fd()), 0, nil, 0); err != nil {
		n.Close()
		return nil, fmt.Errorf("process %d has ended: %w", pid, err)
	}
	return n, nil
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

// StartTime is when a process began, in clock ticks since boot: field 22 of proc_pid_stat(5); the second may have blanks in it.
func StartTime(pid int) (uint64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	const at = 22 - 3 // behind the second field
	if len(fields) <= at {
		return 0, fmt.Errorf("cannot read /proc/%d/stat", pid)
	}
	return strconv.ParseUint(fields[at], 10, 64)
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
