package main

import (
	"errors"
	"io"
	"os"
	"runtime"
	"sync"
	"syscall"

	"clove.run/clove/internal/initproto"
	"golang.org/x/sys/unix"
)

// agentProcess is the agent's first process, or the second stage that will
// become it.
type agentProcess struct {
	pid       int
	conn      *initproto.Conn    // to the second stage
	launched  chan launchOutcome // gets one value; nil once it was taken
	startedNS int64              // CLOCK_BOOTTIME
}

// launchOutcome says that the agent executes since bootTimeNS, or why not.
type launchOutcome struct {
	bootTimeNS int64
	spent      initproto.Spent
	terminal   *os.File // master of its pty; nil without a terminal
	failure    *initproto.ExecFailed
}

// startFailed is a failure of a step before the command's own.
func startFailed(step string, err error) *initproto.ExecFailed {
	failure := &initproto.ExecFailed{Step: step, Message: err.Error(), ExitCode: initproto.ExitStartFailed}
	errors.As(err, &failure.Errno)
	return failure
}

// fork starts the second stage before its orders are there: Go's runtime needs
// most of a millisecond to start, in which PID 1 has things to do.
func fork() (*agentProcess, error) {
	conn, inherited, err := initproto.Pair()
	if err != nil {
		return nil, err
	}
	defer inherited.Close()
	pid, err := forkSecondStage([]uintptr{0, 1, 2, inherited.Fd()})
	if err == nil {
		err = leaveStdio()
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &agentProcess{pid: pid, conn: conn, launched: make(chan launchOutcome, 1)}, nil
}

// order gives the second stage its orders, and lets it become the agent when
// PID 1 has all that it may ever need.
func (a *agentProcess) order(orders *initproto.Orders) error {
	if err := a.conn.Send(initproto.Message{Orders: orders}); err != nil {
		return err
	}
	spareThreads()
	if err := a.conn.CloseSend(); err != nil {
		return err
	}
	go a.follow()
	return nil
}

// forkSecondStage runs this binary again with every capability that PID 1 has:
// an id that is not 0 would lose them at execve(2) if they were not ambient.
func forkSecondStage(files []uintptr) (int, error) {
	held, err := permitted()
	if err != nil {
		return 0, err
	}
	return syscall.ForkExec("/proc/self/exe", []string{secondStageName}, &syscall.ProcAttr{
		Env:   []string{"GOMAXPROCS=1", "GOGC=off"}, // it lives for a millisecond
		Files: files,
		Sys:   &syscall.SysProcAttr{AmbientCaps: held},
	})
}

// follow waits until the second stage is the agent (its socket closes at
// execve), says why not, or dies.
func (a *agentProcess) follow() {
	defer a.conn.Close()
	outcome := launchOutcome{}
	for outcome.failure == nil {
		m, err := a.conn.Receive()
		switch {
		case err == nil && m.Started != nil:
			outcome.bootTimeNS, outcome.spent, outcome.terminal = m.Started.BootTimeNS, m.Started.Spent, m.Started.Terminal
			continue
		case err == nil && m.ExecFailed != nil:
			outcome.failure = m.ExecFailed
		case err == io.EOF && outcome.bootTimeNS != 0:
		case err == io.EOF:
			outcome.failure = startFailed("prepare", errors.New("killed before the command was executed"))
		default:
			outcome.failure = startFailed("prepare", errors.Join(err, errors.New("second stage makes no sense")))
		}
		break
	}
	a.launched <- outcome
}

// toGroup are the signals that a terminal sends to the whole foreground group.
var toGroup = map[syscall.Signal]bool{unix.SIGHUP: true, unix.SIGINT: true, unix.SIGQUIT: true,
	unix.SIGTSTP: true, unix.SIGCONT: true, unix.SIGWINCH: true}

// signal reaches the agent; its pid is its group's, since it began a session.
// Once the agent ended, the worst that a forwarded signal does is to hit
// another process of the same sandbox, which is being killed.
func (a *agentProcess) signal(number syscall.Signal) {
	pid := a.pid
	if toGroup[number] {
		pid = -pid
	}
	_ = unix.Kill(pid, number)
}

// spares and the thread that makes them are one for each goroutine that can be
// in a system call (sandbox.run, receive, reaper.run, two alarms) and one to run.
const spares = 5

// spareThreads makes threads that the runtime keeps for later. An agent that
// holds every process of its pids limit makes clone(2) fail, and Go's runtime
// dies when it wants a thread and gets none.
func spareThreads() {
	var ready, done sync.WaitGroup
	release := make(chan struct{})
	for range spares {
		ready.Add(1)
		done.Add(1)
		go func() {
			defer done.Done()
			runtime.LockOSThread() // so that each needs a thread of its own
			ready.Done()
			<-release
			runtime.UnlockOSThread()
		}()
	}
	ready.Wait()
	close(release)
	done.Wait()
}

// leaveStdio lets go of the agent's input and output, so that the supervisor
// sees when the agent closes them. Something else must have the numbers, or
// the next descriptor would. 2 stays, for the last words of a crash.
func leaveStdio() error {
	dead, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(dead)
	for _, fd := range []int{0, 1} {
		if err := unix.Dup3(dead, fd, unix.O_CLOEXEC); err != nil {
			return err
		}
	}
	return nil
}
