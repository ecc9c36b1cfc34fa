package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/opencontainers/runc/libcontainer"
	"golang.org/x/sys/unix"

	"clove.run/clove/cgroups"
	"clove.run/clove/internal/initproto"
	"clove.run/clove/internal/nsthread"
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
	pid, err := process.Pid()
	// From here on strays takes it for a process that entered. No other start is under way:
	// this runs on the launch thread.
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entered[pid] = true
	return &entered{box: s, group: group, process: process, pid: pid}, err
}

// ended returns when the process has ended, and does not reap it: until reap its
// pid, and so its group's, cannot be another's.
func (e *entered) ended() {
	for unix.Waitid(unix.P_PID, e.pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
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
