package keeper

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
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

// buried is the exit status of a process whose parent has taken it away, known
// to whoever held a pidfd before. It is false while nobody has.
func buried(pidfd int) (status unix.WaitStatus, known bool) {
	info := pidfdInfo{mask: pidfdInfoExit}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(pidfd), pidfdGetInfo, uintptr(unsafe.Pointer(&info)))
	return unix.WaitStatus(info.exitCode), errno == 0 && info.mask&pidfdInfoExit != 0
}

// errStatus means that this kernel does not tell how another's child ended.
var errStatus = errors.New("this kernel does not tell how somebody else's child ended: it needs Linux 6.15 or later")

// checkStatus asks the kernel with a child of its own, which it kills at once.
func checkStatus() error {
	pidfd := -1
	pid, err := syscall.ForkExec("/proc/self/exe", []string{"clove-oci", Argument}, &syscall.ProcAttr{Dir: "/", Sys: &syscall.SysProcAttr{PidFD: &pidfd}})
	if err != nil {
		return fmt.Errorf("cannot try how a process ended: %w", err)
	}
	if pidfd >= 0 {
		defer unix.Close(pidfd)
	}
	_ = unix.Kill(pid, unix.SIGKILL) // it is a child that nobody else buries: the number is still its own
	if err := bury(pid); err != nil {
		return err
	}
	if _, known := buried(pidfd); !known {
		return errStatus
	}
	return nil
}

func bury(pid int) error {
	for {
		if _, err := unix.Wait4(pid, nil, 0, nil); err != unix.EINTR {
			return os.NewSyscallError("wait4", err)
		}
	}
}

// burialLook is between two looks at a zombie that tells nothing, where the
// kernel has no event for its burial.
const burialLook = 100 * time.Millisecond

// status waits until the process behind pidfd has ended and it is known how.
// Its parent may leave it unburied for as long as it likes; such a one shows its
// status in /proc.
func status(pidfd, pid int) unix.WaitStatus {
	events := int16(unix.POLLIN)
	for limit := -1; ; limit = int(burialLook.Milliseconds()) {
		n, _ := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: events}}, limit)
		if status, known := buried(pidfd); known {
			return status
		}
		if status, known := unburied(pid); known {
			return status
		}
		if n > 0 {
			events = 0 // POLLHUP alone: it is buried
		}
	}
}

// unburied reads the status of a zombie, proc_pid_stat(5). The kernel shows 0 in
// place of it to who may not trace the process.
func unburied(pid int) (status unix.WaitStatus, known bool) {
	fields, err := statOf(pid)
	if err != nil || len(fields) < statExitCode+1 || fields[statState] != "Z" || !mayTrace() {
		return 0, false
	}
	code, err := strconv.ParseInt(fields[statExitCode], 10, 32)
	return unix.WaitStatus(code), err == nil
}

// Fields of proc_pid_stat(5), 3, 22 and 52 there, behind the name from 0 on.
const (
	statState     = 0
	statStartTime = 19
	statExitCode  = 49
)

// statOf leaves the number and the name out, which may hold anything.
func statOf(pid int) ([]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	end := strings.LastIndexByte(string(text), ')')
	if end < 0 {
		return nil, fmt.Errorf("cannot parse /proc/%d/stat", pid)
	}
	return strings.Fields(string(text[end+1:])), nil
}

// mayTrace tells whether this process has CAP_SYS_PTRACE.
func mayTrace() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	err := unix.Capget(&header, &data[0])
	return err == nil && data[0].Effective&(1<<unix.CAP_SYS_PTRACE) != 0
}

// open gives a pidfd of the process that began at start; -1: it is gone.
func open(pid int, start uint64) (pidfd int, err error) {
	pidfd, err = unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return -1, nil
	}
	if err != nil {
		return -1, os.NewSyscallError("pidfd_open", err)
	}
	// Looked at behind the opening: were the number another's by now, its time would be, too.
	fields, err := statOf(pid)
	if err == nil && len(fields) > statStartTime && fields[statStartTime] == strconv.FormatUint(start, 10) {
		return pidfd, nil
	}
	return -1, unix.Close(pidfd)
}
