package main

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/descriptor"
	"clove.run/clove/internal/initproto"
)

// harden makes PID 1 unreadable and ignores signals, before any process of the agent exists.
func harden() error {
	// Not dumpable: /proc/1 then belongs to the host's root, so no process of the
	// sandbox may read its memory, environment, descriptors or executable.
	if err := notDumpable(); err != nil {
		return err
	}
	if err := setSavedGID(); err != nil {
		return err
	}
	if err := ignoreSignals(); err != nil {
		return err
	}
	return closeInherited()
}

// savedGID differs from clove-init's other group ids.
const savedGID = 65534

// setSavedGID keeps the sandbox's root, which can take on clove-init's ids, from changing
// clove-init's limits: prlimit(2) requires that all six ids match.
func setSavedGID() error {
	if err := unix.Setresgid(-1, -1, savedGID); err != nil {
		return fmt.Errorf("cannot set the saved group: %w", err)
	}
	return nil
}

// notDumpable gives /proc/PID to the host's root, and forbids ptrace(2) by processes
// without CAP_SYS_PTRACE over clove-init's user namespace.
func notDumpable() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot become undumpable: %w", err)
	}
	return nil
}

// clearParentDeath clears the parent-death signal that the launch set. That signal follows
// the supervisor's thread, not its process. From here on the control socket detects the
// supervisor's end. The setting belongs to the first thread (copy_process gives none to a
// new one), so main must run there.
func clearParentDeath() error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot clear parent-death signal: %w", err)
	}
	return nil
}

// lastSignal is _NSIG of Linux on amd64 and arm64.
const lastSignal = 64

// ignoreSignals sets all signals to SIG_IGN. With Go's handlers, root in the sandbox could
// crash PID 1. The default action protects PID 1 from signals of its namespace
// (pid_namespaces(7)), but reliably only with one thread: up to Linux 6.1 at least, the
// kernel kills a process with more threads when the first one has the signal blocked, as
// Go's runtime does while it makes a thread. An ignored signal has no effect in either
// case. SIGCHLD keeps its default, which ignores it too: with SIG_IGN, children would be
// reaped automatically and wait(2) would return none. SIGURG stays with Go's runtime, which
// preempts goroutines with it and tolerates any number of them.
func ignoreSignals() error {
	return act(func(number unix.Signal) sigaction {
		if number == unix.SIGCHLD {
			return byDefault
		}
		return ignored
	})
}

// defaultSignals restores the default action of every signal. The agent would inherit
// ignored signals: those that PID 1 ignores, and those that the caller of clove did, for
// example nohup(1).
func defaultSignals() error { return act(func(unix.Signal) sigaction { return byDefault }) }

// sigaction is at least as large as the kernel's struct; the handler is its first field.
// Flags and mask stay 0.
type sigaction [4]uintptr

// Values of the handler that are not functions (signal(7), SIG_DFL and SIG_IGN).
var byDefault, ignored = sigaction{0}, sigaction{1}

// sigsetBytes is the size of the kernel's sigset_t.
const sigsetBytes = 8

// act sets the action of every signal, except the two that have none and the runtime's own.
func act(action func(unix.Signal) sigaction) error {
	for number := unix.Signal(1); number <= lastSignal; number++ {
		if number == unix.SIGKILL || number == unix.SIGSTOP || number == unix.SIGURG {
			continue
		}
		wanted := action(number)
		if errno := setAction(number, &wanted); errno != 0 {
			return fmt.Errorf("cannot set the action of signal %d: %w", int(number), errno)
		}
	}
	return nil
}

func setAction(number unix.Signal, wanted *sigaction) unix.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(number), uintptr(unsafe.Pointer(wanted)), 0, sigsetBytes, 0, 0)
	return errno
}

// closeInherited closes descriptors that the launch may have left open besides the
// protocol's, and marks those close-on-exec.
func closeInherited() error {
	unix.CloseOnExec(initproto.ControlFD)
	unix.CloseOnExec(initproto.ExitFD)
	return descriptor.CloseInherited(initproto.ExitFD)
}

// nameProcess sets the name that the agent sees in ps. PID 1 was executed through a
// descriptor, so its name would be that number. The name of a process is that of its first
// thread, where main runs. An error loses only the name.
func nameProcess() {
	name := [16]byte{'c', 'l', 'o', 'v', 'e', '-', 'i', 'n', 'i', 't'} // TASK_COMM_LEN
	_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0, 0, 0)
}
