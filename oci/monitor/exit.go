package monitor

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/pidfd"
)

// pidfdInfo is struct pidfd_info of linux/pidfd.h in its first size, 64 bytes.
type pidfdInfo struct {
	mask     uint64
	cgroupID uint64
	ids      [11]uint32
	exitCode int32 // as wait(2) gives it
}

const (
	pidfdGetInfo  = 0xC040FF0B // _IOWR(0xFF, 11, struct pidfd_info)
	pidfdInfoExit = 1 << 3     // since Linux 6.15
)

// reaped returns the exit status of a process that its parent has reaped, from a
// pidfd that was opened before. known is false while the process is not reaped.
func reaped(p *pidfd.Process) (status unix.WaitStatus, known bool) {
	info := pidfdInfo{mask: pidfdInfoExit}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(p.FD()), pidfdGetInfo, uintptr(unsafe.Pointer(&info)))
	return unix.WaitStatus(info.exitCode), errno == 0 && info.mask&pidfdInfoExit != 0
}

// errStatus means that this kernel does not show the exit status of another process's child.
var errStatus = errors.New("this host does not report the exit status of a process that is not clove-oci's child: that needs Linux 6.15, or Linux 5.18 with taskstats and the host's own namespaces")

// source is where the exit status of the first process comes from.
type source string

const (
	sourcePidfd     source = "pidfd"
	sourceTaskstats source = "taskstats"
)

// findSource returns the first source that works here. It tries each with a child of
// its own, which it kills at once, because no version number proves it.
func findSource(preferred ...source) (source, error) {
	var why error
	for _, s := range preferred {
		err := s.try()
		if err == nil {
			return s, nil
		}
		if !errors.Is(err, errStatus) && !errors.Is(err, errTaskstats) {
			return "", err
		}
		why = err
	}
	if errors.Is(why, errTaskstats) {
		why = fmt.Errorf("%w (%w)", errStatus, why)
	}
	return "", why
}

// try compares the source with what wait(2) returns for a child.
func (s source) try() error {
	pid, process, done, err := waitingChild()
	if err != nil {
		return fmt.Errorf("cannot try how a process ended: %w", err)
	}
	defer done()
	var l *listener
	var failure error
	if s == sourceTaskstats {
		if l, failure = listenEnds(pid); l != nil {
			defer l.close()
		}
	}
	_ = unix.Kill(pid, unix.SIGKILL) // not reaped yet: the number is still the child's
	how, err := reap(pid)
	switch {
	case errors.Join(failure, err) != nil:
		return errors.Join(failure, err)
	case s == sourceTaskstats:
		l.drain()
		if got, err := l.ends.status(); err != nil || got != how {
			return fmt.Errorf("%w: it tells %#x of %#x (%v)", errTaskstats, got, how, err)
		}
	default:
		if got, known := reaped(process); !known || got != how {
			return errStatus
		}
	}
	return nil
}

// waitingChild starts a child that waits to be killed. done closes what the caller
// has of it.
func waitingChild() (pid int, process *pidfd.Process, done func(), err error) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return 0, nil, nil, os.NewSyscallError("pipe2", err)
	}
	closed := ^uintptr(0)
	pid, err = syscall.ForkExec("/proc/self/exe", []string{"clove-oci", Argument}, &syscall.ProcAttr{Dir: "/",
		Files: []uintptr{closed, closed, closed, uintptr(pipe[0])}})
	unix.Close(pipe[0])
	if err == nil {
		process, err = pidfd.Open(pid) // not reaped yet: its number is its own
	}
	if err != nil {
		unix.Close(pipe[1])
		return 0, nil, nil, err
	}
	return pid, process, func() { unix.Close(pipe[1]); process.Close() }, nil
}

func reap(pid int) (how unix.WaitStatus, err error) {
	for {
		if _, err := unix.Wait4(pid, &how, 0, nil); err != unix.EINTR {
			return how, os.NewSyscallError("wait4", err)
		}
	}
}

// reapLook is the time between two samples at a zombie whose status is not readable:
// the kernel has no event for its reaping.
const reapLook = 100 * time.Millisecond

// status waits until the process has ended and its status is known. The parent may
// leave it a zombie for as long as it likes; then /proc shows the status.
func status(p *pidfd.Process, pid int) unix.WaitStatus {
	events := int16(unix.POLLIN)
	for limit := -1; ; limit = int(reapLook.Milliseconds()) {
		n, _ := unix.Poll([]unix.PollFd{{Fd: int32(p.FD()), Events: events}}, limit)
		if status, known := reaped(p); known {
			return status
		}
		if status, known := zombieStatus(pid); known {
			return status
		}
		if n > 0 {
			events = 0 // POLLHUP alone: it is reaped
		}
	}
}

// zombieStatus reads the status of a zombie, proc_pid_stat(5). The kernel shows 0
// instead to a process that may not trace it.
func zombieStatus(pid int) (status unix.WaitStatus, known bool) {
	fields, err := pidfd.Stat(pid)
	if err != nil || fields[statState] != "Z" || !mayTrace() {
		return 0, false
	}
	code, err := strconv.ParseInt(fields[statExitCode], 10, 32)
	return unix.WaitStatus(code), err == nil
}

// Fields of proc_pid_stat(5), 3 and 52 there, as pidfd.Stat counts.
const (
	statState    = 0
	statExitCode = 49
)

// mayTrace reports whether this process has CAP_SYS_PTRACE.
func mayTrace() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	err := unix.Capget(&header, &data[0])
	return err == nil && data[0].Effective&(1<<unix.CAP_SYS_PTRACE) != 0
}
