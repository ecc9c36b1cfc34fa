package runtime

import (
	"context"
	"errors"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/initproto"
)

// cutOff ends the process and all that it has started: TERM for itself, and KILL for all that
// is left when it has ended, or at the end of the grace. An agent that is paused stays so.
func (x *execSession) cutOff(ended <-chan struct{}) {
	if x.grace > 0 {
		x.entered.signal(unix.SIGTERM)
		x.entered.signal(unix.SIGCONT) // a stopped process could not handle it
		select {
		case <-ended:
		case <-time.After(x.grace):
		}
	}
	x.entered.kill()
	<-ended
}

// drainTime bounds the wait for a reader of the remaining output.
const drainTime = 10 * time.Second

// leave passes on what the process wrote, and gives the terminal back. A
// process that it left running in the sandbox may hold its output open without end, so only the output written
// by now counts.
func (x *execSession) leave(ctx context.Context) {
	x.pipes.closeAgentSide()
	// The caller of a process that was cut off may still read.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
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
