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

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/initproto"
)

// Exec runs one more process in the sandbox and returns its exit status, 128 and the
// signal's number where a signal ended it. An error says that it never ran: exitCode is
// then 125, 126 or 127 as of `clove run`. It is killed with its process group when ctx
// ends, and with the agent. What it uses counts as the agent's, but for its output, which
// is its caller's. Of streams only Stdin, Stdout and Stderr count; the caller closes them.
// Decision 20 (docs/decisions) says how it gets no more rights than the agent.
func (l *Live) Exec(ctx context.Context, e agent.Exec, streams IO) (exitCode int, err error) {
	if err := validateExec(e); err != nil {
		return agent.ExitStartFailed, err
	}
	x := &execSession{live: l, streams: streams, pipes: newStreams(0)}
	err = l.do(func() error { return x.admit(e) })
	if err != nil {
		return agent.ExitStartFailed, err
	}
	defer x.pipes.abandon()
	return x.run(ctx)
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
	hostID   uint32 // of id 0 inside
	lists    string // text: the lists of what may be executed and read; empty: there is none
	orders   *initproto.Orders
	streams  IO
	pipes    *streams
	conn     *initproto.Conn
	entered  *entered
	terminal *terminal
}

// admit checks whether the process may enter now, and computes its orders. It runs in the
// supervisor's loop, so that neither a freeze nor the end can come in between.
func (x *execSession) admit(e agent.Exec) error {
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
	if err := agent.CheckExecSize(e.Command, x.orders.Env, s.spec.Limits.StackBytes(agent.StackUnknown)); err != nil {
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
	x.done = s.beginSession()
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

// run takes the process from its entry to its end, and returns its exit status.
func (x *execSession) run(ctx context.Context) (int, error) {
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
	}
	select {
	case <-ended:
	case <-ctx.Done():
		x.entered.kill()
		<-ended
	}
	return err
}

// enter makes the streams and starts clove-init's second stage.
func (x *execSession) enter() (err error) {
	if x.orders.Terminal != nil {
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
	if x.entered, err = x.entrance.enter(x.pipes.agentSide, inherited); err != nil {
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

// drainTime bounds the wait for a reader of the remaining output.
const drainTime = 10 * time.Second

// leave passes on what the process wrote, and gives the terminal back. A
// process that it left running in the sandbox may hold its output open without end, so only the output written
// by now counts.
func (x *execSession) leave(ctx context.Context) {
	x.pipes.closeAgentSide()
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	x.pipes.drainNow(ctx)
	if x.terminal != nil {
		_ = x.live.do(func() error { delete(x.live.s.terminals, x.terminal); return nil })
		x.terminal.restore()
	}
}

// endTime is how long a failed entry waits for the notice that the agent has ended.
const endTime = 2 * time.Second

// failed turns err into an error with the step that failed. If the agent has ended, that is
// the error: everything else follows from it.
func (x *execSession) failed(err error) error {
	select {
	case <-x.live.ended:
		return errEnded()
	default:
	}
	var failure *initproto.ExecFailed
	if !errors.As(err, &failure) {
		// The agent's own end is the usual reason, and takes a moment to be known.
		select {
		case <-x.live.ended:
			return errEnded()
		case <-time.After(endTime):
		}
		return &agent.Error{Kind: agent.KindOf(err), Step: "exec", Message: "cannot enter the sandbox", Err: err,
			Hint: "its pids or its memory may all be in use: `clove stats` shows it"}
	}
	kinds := map[int]agent.Kind{agent.ExitNotFound: agent.KindNotFound, agent.ExitCannotExec: agent.KindInvalid}
	kind, known := kinds[failure.ExitCode]
	if !known {
		kind = agent.KindInternal
	}
	hint := hintFor(execFailure{step: failure.Step, exitCode: failure.ExitCode})
	if x.lists != "" && failure.Errno == unix.EACCES {
		hint = "the run has " + x.lists
	}
	return &agent.Error{Kind: kind, Step: failure.Step, Message: failure.Message, Hint: hint}
}

// listsOf are the lists that refuse programs, as text.
func listsOf(f agent.Files) string {
	var lists []string
	if f.Execute != nil {
		lists = append(lists, "a list of programs that may be executed: `clove inspect` shows it, files.execute")
	}
	if f.Read != nil {
		lists = append(lists, "a list of what may be read, programs included: `clove inspect` shows it, files.read")
	}
	return strings.Join(lists, "; and ")
}

// exitCodeOf is 126 or 127 where clove-init could not execute the command, as a shell
// returns, and 125 for all else.
func exitCodeOf(err error) int {
	var failure *initproto.ExecFailed
	if errors.As(err, &failure) {
		return failure.ExitCode
	}
	return agent.ExitStartFailed
}
