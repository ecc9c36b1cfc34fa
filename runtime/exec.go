package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/internal/initproto"
)

// Exec runs one more process in the sandbox and returns its exit status, 128 and the
// signal's number where a signal ended it. An error says that it never ran, exitCode being
// 125, 126 or 127 as of `clove run`, or 124, that its time was over. When ctx or its time ends
// it gets TERM, the run's grace, and then KILL together with everything that it has started.
// What it leaves running when it ends by itself goes on, unless e.KillRest, and ends with the
// agent. What it uses counts as the agent's, but for its output, which is its caller's. Of
// streams only Stdin, Stdout and Stderr count; the caller closes them.
// Decision 20 (docs/decisions) says how it gets no more rights than the agent.
func (l *Live) Exec(ctx context.Context, e agent.Exec, streams IO) (exitCode int, err error) {
	x, err := l.admit(e, streams)
	if err != nil {
		return agent.ExitStartFailed, err
	}
	return x.run(ctx)
}

// ExecDetached is Exec of a process without a caller, whose output is dropped: it returns 0
// when the process executes.
func (l *Live) ExecDetached(ctx context.Context, e agent.Exec) (int, error) {
	x, err := l.admit(e, IO{})
	if err != nil {
		return agent.ExitStartFailed, err
	}
	type end struct {
		exitCode int
		err      error
	}
	executes, ended := make(chan struct{}), make(chan end, 1)
	x.executes = executes
	go func() {
		code, err := x.run(ctx)
		ended <- end{code, err}
	}()
	select {
	case <-executes:
		return 0, nil
	case e := <-ended:
		return e.exitCode, e.err
	}
}

// admit checks a request, and has the supervisor's loop admit its process.
func (l *Live) admit(e agent.Exec, streams IO) (*execSession, error) {
	if err := validateExec(e); err != nil {
		return nil, err
	}
	x := &execSession{live: l, streams: streams, pipes: newStreams(0), killRest: e.KillRest, timeout: e.Timeout}
	return x, l.do(func() error { return x.admit(e) })
}

// validateExec rejects a request that cannot be carried out as written.
func validateExec(e agent.Exec) error {
	invalid := func(message, hint string) error {
		return &agent.Error{Kind: agent.KindInvalid, Step: "exec", Message: message, Hint: hint}
	}
	if len(e.Command) == 0 || e.Command[0] == "" {
		return invalid("no command", "`clove exec NAME COMMAND [ARGS...]`")
	}
	if e.Dir != "" && !strings.HasPrefix(e.Dir, "/") {
		return invalid(fmt.Sprintf("%q is not an absolute path", e.Dir), "name a folder inside the sandbox from / on")
	}
	if e.Timeout < 0 {
		return invalid(fmt.Sprintf("%s is no time", e.Timeout), "omit it for no limit")
	}
	for _, variable := range e.Env {
		if name, _, found := strings.Cut(variable, "="); !found || name == "" {
			return invalid(fmt.Sprintf("%q is no variable", variable), "write NAME=VALUE")
		}
	}
	return nil
}

// execSession is one process of Exec, from its request to its end. admit checks it in the
// supervisor's loop and takes what it needs of it; enter starts clove-init's second stage
// in the sandbox; start sends it the orders and waits until it executes the command; follow
// waits for its end; reap and leave clean up.
type execSession struct {
	live     *Live
	entrance *entrance
	done     func() // ends what beginSession began
	group    *cgroups.Below
	grace    time.Duration // between TERM and KILL
	timeout  time.Duration // 0: none
	killRest bool          // what it leaves running ends with it
	executes chan struct{} // closed when it executes; nil: nothing waits for that
	hostID   uint32        // of id 0 inside
	lists    string        // text: the lists of what may be executed and read; empty: there is none
	orders   *initproto.Orders
	streams  IO
	pipes    *streams
	conn     *initproto.Conn
	entered  *entered
	terminal *terminal
}

// admit checks whether the process may enter now, and computes its orders. It runs in the
// supervisor's loop, so that neither a freeze nor the end can come in between.
func (x *execSession) admit(e agent.Exec) (err error) {
	s := x.live.s
	switch {
	// A process that joins a frozen cgroup is frozen as well, and the start would wait for
	// it.
	case len(s.freezer.holds) > 0:
		return &agent.Error{Kind: agent.KindBusy, Step: "exec", Message: s.spec.Name + " is frozen while its changes are read",
			Hint: "try again in a moment"}
	case s.freezer.paused:
		return &agent.Error{Kind: agent.KindConflict, Step: "exec", Message: s.spec.Name + " is paused",
			Hint: "`clove resume` lets it go on"}
	case s.seen.cause != causeNone, s.seen.executed != nil:
		return &agent.Error{Kind: agent.KindConflict, Step: "exec", Message: s.spec.Name + " is being ended"}
	}
	x.entrance, x.hostID, x.lists = s.entrance, s.run.Lease.HostID(), listsOf(s.spec.Files)
	x.orders = agentOrders(*s.spec, attainableRlimits(*s.spec, *s.held, s.probes))
	x.entrance.filters.order(x.orders)
	x.orders.Confined, x.orders.Ruleset = x.entrance.ruleset != nil, x.entrance.ruleset
	if err := s.spec.CheckExec(e); err != nil {
		return err
	}
	x.orders.Argv, x.orders.Env = initproto.Strings(e.Command), merged(x.orders.Env, e.Env)
	if err := CheckExecSize(e.Command, x.orders.Env, s.spec.Limits); err != nil {
		return err
	}
	if e.User != nil {
		as := *s.spec
		as.User = *e.User
		x.orders.UID, x.orders.GID, x.orders.Caps = as.User.UID, as.User.GID, capabilitiesOf(as)
	}
	if e.Dir != "" {
		x.orders.Dir = e.Dir
	}
	// The orders are the agent's, which may have a terminal; this process has one only if
	// its caller wants it.
	x.orders.Terminal = nil
	if e.Terminal {
		x.orders.Terminal = terminalSize(x.streams.Stdin)
	}
	if err := x.orders.Validate(); err != nil {
		return &agent.Error{Kind: agent.KindInvalid, Step: "exec", Message: "cannot run it", Err: err}
	}
	if x.group, err = s.beginGroup(); err != nil {
		return &agent.Error{Kind: freezeKind(err), Step: "exec", Message: "cannot give it a cgroup of its own", Err: err}
	}
	x.grace, x.done = s.spec.Limits.StopGrace, s.beginSession()
	return nil
}

// merged is base with more in place of variables of the same names: of two with one name,
// getenv(3) finds the first.
func merged(base, more []string) []string {
	name := func(variable string) string { before, _, _ := strings.Cut(variable, "="); return before }
	kept := slices.DeleteFunc(slices.Clone(base), func(old string) bool {
		return slices.ContainsFunc(more, func(new string) bool { return name(new) == name(old) })
	})
	return append(kept, more...)
}

// errOverTime is why the context of a process with a time limit ends.
var errOverTime = errors.New("its time is over")

// run takes the process from its entry to its end, and returns its exit status.
func (x *execSession) run(ctx context.Context) (int, error) {
	defer x.pipes.abandon()
	if x.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, x.timeout, errOverTime)
		defer cancel()
	}
	defer func() { _ = x.live.do(func() error { x.live.s.endGroup(x.group); return nil }) }() // the agent's end removes it, too
	if err := x.enter(); err != nil {
		x.done()
		return agent.ExitStartFailed, x.failed(err)
	}
	defer x.conn.Close()
	err := x.follow(ctx)
	status := x.entered.reap()
	x.done() // now: the agent's end waits for the process, and not for our reader
	x.leave(ctx)
	switch {
	case err != nil:
		return exitCodeOf(err), x.failed(err)
	case context.Cause(ctx) == errOverTime:
		return agent.ExitTimeout, &agent.Error{Kind: agent.KindInvalid, Step: "exec", Message: "it was ended at its time limit of " + x.timeout.String(),
			Hint: "give it more with --timeout"}
	case status.Signaled():
		return agent.ExitSignalBase + int(status.Signal()), nil
	}
	return status.ExitStatus(), nil
}

// follow returns when the process has ended, and why it never ran. The start has a
// goroutine of its own, because it waits for the other side, which ctx must be able to end.
func (x *execSession) follow(ctx context.Context) error {
	ended, started := make(chan struct{}), make(chan error, 1)
	go func() { x.entered.ended(); close(ended) }()
	go func() { started <- x.start() }()
	var err error
	select {
	case err = <-started:
	case <-ctx.Done():
		x.entered.kill()
		// The kill closes the process's end of the connection, so start returns.
		err = errors.Join(ctx.Err(), <-started)
	}
	if err != nil {
		x.entered.kill()
		<-ended
		return err
	}
	if x.executes != nil {
		close(x.executes)
	}
	select {
	case <-ended:
		if x.killRest {
			x.entered.kill()
		}
	case <-ctx.Done():
		x.cutOff(ended)
	}
	return nil
}

// enter makes the streams and starts clove-init's second stage.
func (x *execSession) enter() (err error) {
	if x.orders.Terminal != nil || x.executes != nil {
		err = x.pipes.connectNull()
	} else {
		err = x.pipes.connectPipes(x.streams)
	}
	if err != nil {
		return err
	}
	conn, inherited, err := initproto.Pair()
	if err != nil {
		return err
	}
	// The parent's copy must go, or the end of the process would not close the connection.
	defer inherited.Close()
	if x.entered, err = x.entrance.enter(x.pipes.agentSide, inherited, x.group); err != nil {
		return errors.Join(err, conn.Close())
	}
	x.conn = conn
	return nil
}

// start turns the second stage into the process.
func (x *execSession) start() error {
	m, err := x.conn.Receive()
	if err != nil {
		return fmt.Errorf("it ended while it entered the sandbox: %w", err)
	}
	if m.Entered == nil {
		return errNonsense
	}
	// libcontainer has given them to clove-init's id by now.
	if err := x.pipes.giveTo(int(x.hostID+x.orders.UID), int(x.hostID+x.orders.GID)); err != nil {
		return err
	}
	x.pipes.closeAgentSide()
	if _, err := unprivileged(x.entered.pid); err != nil {
		return err
	}
	if err := x.conn.Send(initproto.Message{Orders: x.orders}); err != nil {
		return err
	}
	// The second stage executes only after the end of messages.
	if err := x.conn.CloseSend(); err != nil {
		return err
	}
	return x.await()
}

// await returns when the process executes.
func (x *execSession) await() error {
	for begun := false; ; {
		m, err := x.conn.Receive()
		switch {
		case err == io.EOF && begun: // execve closed its end
			if x.entrance.calls.unseen() {
				_, err = restricted(x.entered.pid)
				return err
			}
			return nil
		case err != nil:
			return fmt.Errorf("it ended before it was executed: %w", err)
		case m.ExecFailed != nil:
			return m.ExecFailed
		case m.Filtered != nil:
			if err := x.entrance.calls.admit(m.Filtered.Listener, x.isSession); err != nil {
				return err
			}
			continue
		case m.Started == nil || begun:
			return errNonsense
		}
		if begun = true; m.Started.Terminal != nil {
			x.join(m.Started.Terminal)
		}
	}
}

// isSession reports whether a thread is of the process that entered.
func (x *execSession) isSession(status map[string]string) bool {
	return status["Tgid"] == strconv.Itoa(x.entered.pid)
}

// join makes the user's terminal follow the pty.
func (x *execSession) join(master *os.File) {
	x.terminal = joinTerminal(master, x.pipes, x.streams)
	// Where the agent has ended meanwhile, so has the process.
	_ = x.live.do(func() error {
		x.live.s.terminals[x.terminal] = true
		x.terminal.resize() // the window may have changed before the terminal was in the table
		return nil
	})
}
