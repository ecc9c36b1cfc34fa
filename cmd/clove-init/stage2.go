package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"clove.run/clove/internal/initproto"
	"golang.org/x/sys/unix"
)

// secondStageName is argv[0] of the second stage.
const secondStageName = "clove-init-exec"

// secondStage turns this process into the agent. It returns only after a
// failure: nil where PID 1 has been told.
func secondStage() error {
	runtime.LockOSThread() // ids, capabilities and masks are a thread's own
	if err := defaultSignals(); err != nil {
		return err
	}
	conn, err := initproto.NewConn(initproto.ControlFD)
	if err != nil {
		return err
	}
	return obey(conn, steps)
}

// enter is a second stage that came into a living sandbox from outside. Its
// parent is no PID 1 of ours, and the agent runs beside it: it must be
// unreadable before anything else.
func enter() error {
	runtime.LockOSThread()
	if err := notDumpable(); err != nil {
		return err
	}
	if err := defaultSignals(); err != nil {
		return err
	}
	conn, err := initproto.NewConn(initproto.ControlFD)
	if err != nil {
		return err
	}
	if err := conn.Send(initproto.Message{Entered: &initproto.Entered{}}); err != nil {
		return err
	}
	return obey(conn, steps[1:]) // libcontainer has begun a session for it
}

// obey waits for the orders and carries them out.
func obey(conn *initproto.Conn, steps []step) error {
	m, err := conn.Receive()
	if err == io.EOF {
		return nil // PID 1 refused the orders, and says so itself
	}
	if err != nil {
		return err
	}
	if m.Orders == nil {
		return errors.New("cannot become the agent: no orders")
	}
	return conn.Send(initproto.Message{ExecFailed: become(m.Orders, steps, conn)})
}

// step is one thing that makes the process more like the agent.
type step struct {
	name string
	do   func(*initproto.Orders) error
}

// steps are in the only order that works; each says what it must precede.
var steps = []step{
	// First, or the pty could not become this session's.
	{"setsid", func(*initproto.Orders) error { return ignoreInt(unix.Setsid()) }},
	{"controlling terminal", takeTerminal},
	{"umask", func(*initproto.Orders) error { unix.Umask(agentUmask); return nil }},
	// Needs SETPCAP, which setCapabilities takes away.
	{"bounding set", dropBounding},
	{"no_new_privs", noNewPrivs},
	// These need SETGID and SETUID; the user last, so that no step runs as the
	// agent with PID 1's groups.
	{"groups", setGroups},
	{"gid", setGID},
	{"uid", setUID},
	{"capabilities", setCapabilities},
	// As the agent: what it may not enter or see, it must not start in.
	{"chdir", func(o *initproto.Orders) error { return at(o.Dir, unix.Chdir(o.Dir)) }},
	{"descriptors", closeOnExec},
}

// agentUmask is what login shells start with.
const agentUmask = 0o022

// become runs the steps, finds the command and executes it.
func become(orders *initproto.Orders, steps []step, conn *initproto.Conn) *initproto.ExecFailed {
	if err := notDumpable(); err != nil {
		return startFailed("dumpable", err)
	}
	terminal, err := openTerminal(orders)
	if err != nil {
		return startFailed("terminal", err)
	}
	for _, step := range steps {
		if err := step.do(orders); err != nil {
			return startFailed(step.name, err)
		}
	}
	path, failure := lookUp(orders.Argv[0], orders.Env)
	if failure != nil {
		return failure
	}
	image, err := newImage(path, orders)
	if err != nil {
		return startFailed("prepare", err)
	}
	// PID 1 says with the end of its messages that it is ready for the agent.
	if _, err := conn.Receive(); err != io.EOF {
		return startFailed("prepare", errors.Join(err, errors.New("more than orders came")))
	}
	// The wall clock and the agent's own use start here: nothing that is left can take time.
	now := initproto.Message{Started: &initproto.Started{Spent: spent(cgroupDir), BootTimeNS: bootTimeNS(), Terminal: terminal}}
	if err := conn.Send(now); err != nil {
		return startFailed("prepare", err)
	}
	rehearse()
	return image.execute()
}

// rehearse lets Go take now the memory that telling of a failure needs: the
// agent's limits, which stand by then, may leave none.
func rehearse() {
	debug.SetGCPercent(-1)
	_, _ = initproto.Encode(initproto.Message{ExecFailed: startFailed("execve", unix.ENOEXEC)})
}

// takeTerminal makes the pty, which is 0 by now, the session's own.
func takeTerminal(orders *initproto.Orders) error {
	if orders.Terminal == nil {
		return nil
	}
	return unix.IoctlSetInt(0, unix.TIOCSCTTY, 0)
}

// closeOnExec leaves the agent 0, 1 and 2, whatever else is open here.
func closeOnExec(*initproto.Orders) error {
	return unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
}

func noNewPrivs(*initproto.Orders) error {
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

func ignoreInt(_ int, err error) error { return err }

// at names what the failure is about.
func at(subject string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", subject, err)
}
