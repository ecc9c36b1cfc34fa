package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/boottime"
	"clove.run/clove/internal/initproto"
)

// secondStageName is argv[0] of the second stage.
const secondStageName = "clove-init-exec"

// secondStage turns this process into the agent. It returns only after a failure; nil if
// the failure was sent to PID 1.
func secondStage() error {
	runtime.LockOSThread() // ids, capabilities and signal masks belong to a thread
	if err := defaultSignals(); err != nil {
		return err
	}
	conn, err := initproto.NewConn(initproto.ControlFD)
	if err != nil {
		return err
	}
	return obey(conn, preparations)
}

// enter is a second stage that joined a running sandbox from outside (clove exec). Its
// parent is not PID 1, and the agent runs beside it, so it must become unreadable before
// anything else.
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
	return obey(conn, preparations[1:]) // without setsid: libcontainer has made a session
}

// obey waits for the orders and carries them out.
func obey(conn *initproto.Conn, preparations []preparation) error {
	m, err := conn.Receive()
	if err == io.EOF {
		return nil // PID 1 rejected the orders and reports that itself
	}
	if err != nil {
		return err
	}
	if m.Orders == nil {
		return errors.New("cannot become the agent: no orders")
	}
	failure := become(m.Orders, preparations, conn)
	if failure == nil {
		return nil // it was sent
	}
	return conn.Send(initproto.Message{ExecFailed: failure})
}

// preparation changes one attribute of the process to the agent's.
type preparation struct {
	name string
	do   func(*initproto.Orders) error
}

// preparations are in the only order that works. The comments say what depends on the order.
var preparations = []preparation{
	// First: only a session leader can get the pty as its controlling terminal.
	{"setsid", func(*initproto.Orders) error { return ignoreInt(unix.Setsid()) }},
	{"controlling terminal", takeTerminal},
	{"umask", func(*initproto.Orders) error { unix.Umask(agentUmask); return nil }},
	// Needs CAP_SETPCAP, which setCapabilities removes.
	{"bounding set", dropBounding},
	{"no_new_privs", noNewPrivs},
	// These need CAP_SETGID and CAP_SETUID. The user comes last, so that nothing runs as
	// the agent with PID 1's groups.
	{"groups", setGroups},
	{"gid", setGID},
	{"uid", setUID},
	// A change of ids resets this to fs.suid_dumpable. Up to here no process of the agent has
	// all capabilities of this one, CAP_SETPCAP first of all, so none may trace it (ptrace(2)).
	// From here on only this stops them, until execve puts it under the agent's filter.
	{"dumpable", func(*initproto.Orders) error { return notDumpable() }},
	{"capabilities", setCapabilities},
	// With the agent's ids: what it could not write is not written for it.
	{"home", writeHome},
	// With the agent's ids: it must not start in a directory that it may not enter.
	{"chdir", func(o *initproto.Orders) error { return at(o.Dir, unix.Chdir(o.Dir)) }},
	{"descriptors", closeOnExec},
}

// agentUmask is the usual umask of a login shell.
const agentUmask = 0o022

// become runs the preparations, finds the command and executes it. It returns nil after a
// failure that was sent already.
func become(orders *initproto.Orders, preparations []preparation, conn *initproto.Conn) *initproto.ExecFailed {
	if err := notDumpable(); err != nil {
		return startFailed("dumpable", err)
	}
	// First, while this process may still change the pty's owner (CAP_CHOWN).
	terminal, err := openTerminal(orders)
	if err != nil {
		return startFailed("terminal", err)
	}
	for _, preparation := range preparations {
		if err := preparation.do(orders); err != nil {
			return startFailed(preparation.name, err)
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
	var c *companion
	if image.filters.plain != nil {
		c = newCompanion(conn, image.limits)
	}
	// PID 1 ends its messages when it is ready for the agent.
	if _, err := conn.Receive(); err != io.EOF {
		return startFailed("prepare", errors.Join(err, errors.New("more than orders came")))
	}
	// The wall clock and the agent's own usage start here. The remaining steps take no time.
	now := initproto.Message{Started: &initproto.Started{Spent: spent(cgroupDir), BootTimeNS: boottime.NowNS(), Terminal: terminal}}
	if err := conn.Send(now); err != nil {
		return startFailed("prepare", err)
	}
	rehearse()
	if c == nil {
		return image.execute()
	}
	return image.executeFiltered(c)
}

// rehearse encodes a failure in advance, so that Go allocates now the memory for it: under
// the agent's limits there may be none. The collector is switched off to keep it.
func rehearse() {
	debug.SetGCPercent(-1)
	_, _ = initproto.Encode(initproto.Message{Filtered: &initproto.Filtered{}})
	_, _ = initproto.Encode(initproto.Message{ExecFailed: startFailed("execve", unix.ENOEXEC)})
}

// takeTerminal makes the pty, which is descriptor 0 by now, the controlling terminal of the
// session.
func takeTerminal(orders *initproto.Orders) error {
	if orders.Terminal == nil {
		return nil
	}
	return unix.IoctlSetInt(0, unix.TIOCSCTTY, 0)
}

// closeOnExec leaves the agent only descriptors 0, 1 and 2.
func closeOnExec(*initproto.Orders) error {
	return unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
}

func noNewPrivs(*initproto.Orders) error {
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// ignoreInt drops the session id that setsid(2) returns.
func ignoreInt(_ int, err error) error { return err }

// at adds the subject of a failure.
func at(subject string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", subject, err)
}
