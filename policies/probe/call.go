package probe

import (
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// step is between two looks at a call that has not returned.
const step = 5 * time.Millisecond

// made makes a system call in a child, or where the filter allows none in a thread.
func made(number int32, args [6]uint64) Found {
	standardSignals()
	pid, errno := child(uintptr(number), args)
	if errno != 0 {
		return inThread(number, args)
	}
	var status syscall.WaitStatus
	for waited := time.Duration(0); ; waited += step {
		ended, err := syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return Found{Untried: true, Detail: "its child cannot be waited for: " + err.Error()}
		case ended == pid:
			return ofChild(status)
		case waited >= CallTime:
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
			for ended != pid && (err == nil || err == syscall.EINTR) {
				ended, err = syscall.Wait4(pid, nil, 0, nil)
			}
			return Found{Done: true, Detail: "it has not returned"}
		}
		pause()
	}
}

// ofChild reads how the child ended: with the errno as its exit status. A signal other than
// the filter's comes from what the call did.
func ofChild(status syscall.WaitStatus) Found {
	switch {
	case status.Signaled() && status.Signal() == syscall.SIGSYS:
		return Found{Killed: true, Detail: "ended by SIGSYS"}
	case status.Signaled():
		return Found{Done: true, Detail: "it ended its process"}
	}
	return returned(syscall.Errno(status.ExitStatus()))
}

// returned leaves it to the caller which errno is a filter's.
func returned(errno syscall.Errno) Found {
	if errno == 0 {
		return Found{Done: true, Detail: "carried out"}
	}
	return Found{Done: true, Errno: int(errno), Detail: errno.Error()}
}

// child forks. From there on the child is one thread without Go's scheduler, so it makes
// plain system calls only, and does not grow its stack. All memory is a copy of its own.
//
//go:nosplit
//go:norace
//go:noinline
func child(number uintptr, args [6]uint64) (int, syscall.Errno) {
	pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return int(pid), errno
	}
	// Go's output about a crash of the child is not the probe's.
	syscall.RawSyscall(syscall.SYS_CLOSE, 1, 0, 0)
	syscall.RawSyscall(syscall.SYS_CLOSE, 2, 0, 0)
	_, _, errno = syscall.RawSyscall6(number, uintptr(args[0]), uintptr(args[1]), uintptr(args[2]), uintptr(args[3]), uintptr(args[4]), uintptr(args[5]))
	for {
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, uintptr(errno), 0, 0)
	}
}

// standardSignals gives SIGSYS its default action, which ends the process: Go would print a
// trace and exit.
func standardSignals() {
	var action [4]uint64 // struct sigaction of the kernel: SIG_DFL, no flags, no restorer, no mask
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGSYS), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
}

// deadly reports whether a call could end the probe if one of its threads made it. Without
// arguments kill(2) sends nothing.
func deadly(number int32, args [6]uint64) bool {
	switch number {
	case syscall.SYS_EXIT_GROUP, syscall.SYS_RT_SIGRETURN:
		return true
	case syscall.SYS_KILL, syscall.SYS_TGKILL:
		return args != [6]uint64{}
	}
	return false
}

// inThread makes the call in a thread that no other goroutine gets.
func inThread(number int32, args [6]uint64) Found {
	if deadly(number, args) {
		return Found{Untried: true, Detail: "it could end the probe, and the filter allows no child"}
	}
	var result atomic.Int64
	result.Store(-1)
	go func() {
		runtime.LockOSThread() // for ever: what the call did to it is unknown
		_, _, errno := syscall.Syscall6(uintptr(number), uintptr(args[0]), uintptr(args[1]), uintptr(args[2]), uintptr(args[3]), uintptr(args[4]), uintptr(args[5]))
		result.Store(int64(errno))
		for {
			pause()
		}
	}()
	for waited := time.Duration(0); waited < CallTime; waited += step {
		if errno := result.Load(); errno >= 0 {
			return returned(syscall.Errno(errno))
		}
		pause()
	}
	return Found{Done: true, Detail: "it has not returned"}
}

// pause is without Go's timers, which need epoll.
func pause() {
	wait := syscall.NsecToTimespec(int64(step))
	_ = syscall.Nanosleep(&wait, nil) // a signal ends it early, and nothing depends on its length
}
