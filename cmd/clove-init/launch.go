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

// agentProcess is the agent's first process, before its execve the second stage.
type agentProcess struct {
	pid       int
	conn      *initproto.Conn    // to the second stage
	launched  chan launchOutcome // receives one value; nil after it was taken
	startedNS int64              // CLOCK_BOOTTIME
	forward   func(initproto.Message)
}

// launchOutcome says since when the agent executes, or why it does not.
type launchOutcome struct {
	bootTimeNS int64
	spent      initproto.Spent
	terminal   *os.File // master of its pty; nil without a terminal
	failure    *initproto.ExecFailed
}

// startFailed makes the failure of a step before the command's execution.
func startFailed(step string, err error) *initproto.ExecFailed {
	failure := &initproto.ExecFailed{Step: step, Message: err.Error(), ExitCode: initproto.ExitStartFailed}
	errors.As(err, &failure.Errno)
	return failure
}

// fork starts the second stage before its orders arrive: the start of Go's runtime takes
// most of a millisecond, during which PID 1 has other work.
func fork() (*agentProcess, error) {
	conn, inherited, err := initproto.Pair()
	if err != nil {
		return nil, err
	}
	defer inherited.Close()
	pid, err := forkSecondStage([]uintptr{0, 1, 2, inherited.Fd()})
	// After the fork, because the second stage inherits the streams from PID 1.
	if err == nil {
		err = leaveStdio()
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &agentProcess{pid: pid, conn: conn, launched: make(chan launchOutcome, 1)}, nil
}

// order sends the orders to the second stage. The end of messages then allows it to become
// the agent; by then PID 1 has all resources that it may ever need.
func (a *agentProcess) order(orders *initproto.Orders) error {
	err := a.conn.Send(initproto.Message{Orders: orders})
	if orders.Ruleset != nil {
		orders.Ruleset.Close()
	}
	if err != nil {
		return err
	}
	spareThreads()
	if err := a.conn.CloseSend(); err != nil {
		return err
	}
	go a.follow()
	return nil
}

// forkSecondStage executes this binary again with all of PID 1's capabilities. They must be
// ambient: a process whose id is not 0 loses others at execve(2).
func forkSecondStage(files []uintptr) (int, error) {
	held, err := permitted()
	if err != nil {
		return 0, err
	}
	return syscall.ForkExec("/proc/self/exe", []string{secondStageName}, &syscall.ProcAttr{
		Env:   initproto.StageEnv,
		Files: files,
		Sys:   &syscall.SysProcAttr{AmbientCaps: held},
	})
}

// follow waits until the second stage has become the agent (its socket closes at execve),
// reports a failure, or dies.
func (a *agentProcess) follow() {
	defer a.conn.Close()
	outcome := launchOutcome{}
	for outcome.failure == nil {
		m, err := a.conn.Receive()
		switch {
		// Not the end: the second stage can still fail between this message and execve.
		case err == nil && m.Started != nil:
			outcome.bootTimeNS, outcome.spent, outcome.terminal = m.Started.BootTimeNS, m.Started.Spent, m.Started.Terminal
			continue
		// The supervisor has the listener now, and alone: PID 1's copy would keep the calls
		// waiting that no process answers any more.
		case err == nil && m.Filtered != nil:
			a.forward(m)
			if m.Filtered.Listener != nil {
				m.Filtered.Listener.Close()
			}
			continue
		case err == nil && m.ExecFailed != nil:
			outcome.failure = m.ExecFailed
		// execve closed the socket, which is close-on-exec: the agent executes.
		case err == io.EOF && outcome.bootTimeNS != 0:
		case err == io.EOF:
			outcome.failure = startFailed("prepare", errors.New("killed before the command was executed"))
		default:
			outcome.failure = startFailed("prepare", errors.Join(err, errors.New("the second stage sent an unexpected message")))
		}
		break
	}
	a.launched <- outcome
}

// toGroup are the signals that a terminal sends to its foreground process group.
var toGroup = map[syscall.Signal]bool{unix.SIGHUP: true, unix.SIGINT: true, unix.SIGQUIT: true,
	unix.SIGTSTP: true, unix.SIGCONT: true, unix.SIGWINCH: true}

// signal sends a signal to the agent. The agent leads a session, so its pid is also its
// process group. After the agent's end the pid may be reused, but only by a process of this
// sandbox, which is being killed.
func (a *agentProcess) signal(number syscall.Signal) {
	pid := a.pid
	if toGroup[number] {
		pid = -pid
	}
	_ = unix.Kill(pid, number)
}

// spares, and the thread that makes them, are one thread for each goroutine that can block
// in a system call (sandbox.run, receive, reaper.run, two alarms) and one to run on.
const spares = 5

// spareThreads makes threads that Go's runtime keeps for later. When the agent uses up its
// pids limit, clone(2) fails for PID 1 too, and Go's runtime crashes if it cannot make a
// thread.
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

// leaveStdio closes PID 1's copies of the agent's stdin and stdout, so that the supervisor
// sees when the agent closes them. An eventfd takes the numbers, because the next opened
// descriptor would otherwise get one of them. stderr stays open, for the message of a
// crash.
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
