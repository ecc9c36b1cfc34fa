package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/opencontainers/runc/libcontainer"
	"golang.org/x/sys/unix"

	"clove.run/clove/cgroups"
	"clove.run/clove/internal/initproto"
	"clove.run/clove/internal/nsthread"
	"clove.run/clove/internal/pidfd"
)

// enterExecutable is clove-init's descriptor in a process that comes later.
const enterExecutable = "/proc/self/fd/4"

// entrance starts more processes in a sandbox.
type entrance struct {
	init    string           // path of clove-init
	thread  *nsthread.Thread // the launch thread
	box     *sandbox
	filters filters
	calls   *calls
	ruleset *os.File // the agent's Landlock rules; nil: there are none
}

// enter starts clove-init's second stage in the sandbox, in a cgroup below the agent's.
func (e *entrance) enter(stdio []*os.File, control *os.File, group *cgroups.Below) (p *entered, err error) {
	executable, err := os.Open(e.init)
	if err != nil {
		return nil, err
	}
	defer executable.Close()
	err = e.thread.Do(func() (err error) { p, err = e.box.enter(stdio, control, executable, group); return err })
	return p, err
}

// entered is a process that came into the sandbox from outside. It is clove's
// own child, so clove must reap it: PID 1's end waits for that.
type entered struct {
	box     *sandbox
	group   *cgroups.Below // its own, and that of all that it starts
	process *libcontainer.Process
	pid     int // on the host
	handle  *pidfd.Process
}

// enter starts clove-init's second stage in the namespaces of the sandbox and a cgroup below
// its own, with PID 1's ids and capabilities.
func (s *sandbox) enter(stdio []*os.File, control, executable *os.File, group *cgroups.Below) (*entered, error) {
	process, err := s.processOf([]string{enterExecutable, initproto.EnterArgument}, initproto.StageEnv)
	if err != nil {
		return nil, err
	}
	process.Stdin, process.Stdout, process.Stderr = stdio[0], stdio[1], stdio[2]
	process.ExtraFiles = []*os.File{control, executable}
	process.SubCgroupPaths = group.Join
	if err := s.container.Start(process); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot enter the sandbox: %w", err), s.reapStrays())
	}
	e := &entered{box: s, group: group, process: process}
	if e.pid, err = process.Pid(); err != nil {
		return nil, err
	}
	// From here on strays takes it for a process that entered. No other start is under way:
	// this runs on the launch thread.
	s.mu.Lock()
	s.entered[e.pid] = true
	s.mu.Unlock()
	if e.handle, err = pidfd.Open(e.pid); err != nil { // too many descriptors are open
		e.kill()
		e.reap()
		return nil, err
	}
	return e, nil
}

// tracerPatience is how long a process that has ended may stay its tracer's.
const tracerPatience = 2 * time.Second

// ended returns when the process has ended and can be reaped, and does not reap it: until reap
// its pid, and so its group's, cannot be another's. It first waits for the end alone: a wait for
// a child also returns when the child stops, if it has made its parent its tracer
// (PTRACE_TRACEME).
func (e *entered) ended() {
	e.handle.Wait(context.Background())
	// A process of the sandbox that traces it and does not wait for it would keep it.
	release := time.AfterFunc(tracerPatience, e.killTracer)
	defer release.Stop()
	for unix.Waitid(unix.P_PID, e.pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}

// killTracer ends the process that traces this one, if it is inside: a tracer on the host is
// an administrator's.
func (e *entered) killTracer() {
	tracer := func() int {
		status, err := pidfd.Status(e.pid)
		if err != nil {
			return 0
		}
		thread, _ := strconv.Atoi(status["TracerPid"])
		if status, err = pidfd.Status(thread); err != nil {
			return 0
		}
		pid, _ := strconv.Atoi(status["Tgid"])
		return pid
	}
	pid := tracer()
	handle, err := pidfd.Open(pid)
	if err != nil {
		return
	}
	defer handle.Close()
	// Again, because its number could have been reused before the open.
	if namespace := pidNamespace(e.box.pid); tracer() == pid && namespace != "" && pidNamespace(pid) == namespace {
		_ = handle.Signal(unix.SIGKILL)
	}
}

// signal must come before reap.
func (e *entered) signal(number unix.Signal) { _ = unix.Kill(e.pid, number) }

// kill ends the process and all that it started, whatever sessions, process groups and parents
// those have. Where the agent is frozen on v1 they end when it goes on: the signal waits for
// them.
func (e *entered) kill() {
	e.signal(unix.SIGKILL)
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	_ = e.group.Kill(ctx)
}

// reap waits for the process and returns how it ended.
func (e *entered) reap() syscall.WaitStatus {
	if e.handle != nil {
		defer e.handle.Close()
	}
	state, _ := e.process.Wait() // its error says again how it ended
	e.box.mu.Lock()
	delete(e.box.entered, e.pid)
	e.box.mu.Unlock()
	if state == nil {
		return 0
	}
	status, _ := state.Sys().(syscall.WaitStatus)
	return status
}
