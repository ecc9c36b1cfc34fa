package main

import (
	"fmt"
	"os"
	"strconv"
	"unsafe"

	"clove.run/clove/internal/initproto"
	"golang.org/x/sys/unix"
)

// harden makes PID 1 unreadable and deaf before any agent exists.
func harden() error {
	// Not dumpable: /proc/1 belongs to the host's root, and no process of the
	// sandbox may read its memory, environment, descriptors or executable.
	if err := notDumpable(); err != nil {
		return err
	}
	if err := beNobodysEqual(); err != nil {
		return err
	}
	if err := ignoreSignals(); err != nil {
		return err
	}
	return closeInherited()
}

// savedGID differs from clove-init's other group ids.
const savedGID = 65534

// beNobodysEqual keeps root of the sandbox, which can take on clove-init's ids,
// from changing its limits: prlimit(2) wants all six ids to be equal.
func beNobodysEqual() error {
	if err := unix.Setresgid(-1, -1, savedGID); err != nil {
		return fmt.Errorf("cannot set the saved group: %w", err)
	}
	return nil
}

func notDumpable() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot become undumpable: %w", err)
	}
	return nil
}

// forgetParent undoes the parent-death signal that the launch set: from here
// on the control socket is the lifeline, and it outlives a thread of the
// supervisor, which is what the signal would follow. It is the first thread's
// own (copy_process gives none to a new one), so main must be there.
func forgetParent() error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot clear parent-death signal: %w", err)
	}
	return nil
}

// lastSignal is _NSIG of Linux's amd64 and arm64.
const lastSignal = 64

// ignoreSignals makes PID 1 deaf. A handler of Go's runtime would mean that
// root in the sandbox could crash it. The kernel's default action, which
// nobody in the namespace can send to PID 1 (pid_namespaces(7)), would hold
// for one thread: with more of them it kills, up to Linux 6.1 at the least,
// when the first one has its signals blocked, as Go's runtime does when it
// makes a thread. What is ignored does nothing either way. SIGCHLD is ignored
// by default, and with it explicitly wait(2) would wait for nobody. SIGURG stays with the runtime, which
// stops its own goroutines with it and bears a flood of them.
func ignoreSignals() error {
	return act(func(number unix.Signal) sigaction {
		if number == unix.SIGCHLD {
			return byDefault
		}
		return ignored
	})
}

// defaultSignals puts back the kernel's default action for every signal: what
// is ignored would be inherited by the agent, and PID 1 ignores, as does
// perhaps who started clove, nohup(1) for one.
func defaultSignals() error { return act(func(unix.Signal) sigaction { return byDefault }) }

// sigaction is more than the kernel's; the handler comes first. Without flags
// and mask.
type sigaction [4]uintptr

// The handlers that are none (signal(7), SIG_DFL and SIG_IGN).
var byDefault, ignored = sigaction{0}, sigaction{1}

// sigsetBytes is the size of the kernel's sigset_t.
const sigsetBytes = 8

// act sets the action of all signals that have one, the runtime's own aside.
func act(action func(unix.Signal) sigaction) error {
	for number := unix.Signal(1); number <= lastSignal; number++ {
		if number == unix.SIGKILL || number == unix.SIGSTOP || number == unix.SIGURG {
			continue
		}
		wanted := action(number)
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(number), uintptr(unsafe.Pointer(&wanted)), 0, sigsetBytes, 0, 0)
		if errno != 0 {
			return fmt.Errorf("cannot set the action of signal %d: %w", int(number), errno)
		}
	}
	return nil
}

// closeInherited closes what the launch may have left open beyond the protocol
// and keeps the rest from the agent. What Go's runtime opened by itself is
// close-on-exec and so cannot be inherited.
func closeInherited() error {
	unix.CloseOnExec(initproto.ControlFD)
	unix.CloseOnExec(initproto.ExitFD)
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
		if err != nil || fd <= initproto.ExitFD {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			unix.Close(fd)
		}
	}
	return nil
}

// nameProcess gives PID 1 its name in the agent's ps: it was executed through
// a descriptor, whose number would stand there. A process has the name of its
// first thread, where main is; without a name nothing else is lost.
func nameProcess() {
	name := [16]byte{'c', 'l', 'o', 'v', 'e', '-', 'i', 'n', 'i', 't'} // TASK_COMM_LEN
	_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0, 0, 0)
}
