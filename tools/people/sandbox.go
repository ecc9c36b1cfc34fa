package people

import (
	"context"
	"fmt"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/tools"
)

// sandbox is one in which tools work.
type sandbox struct {
	server *Server

	// The server's mu guards the following.
	calls int         // in flight
	idle  *time.Timer // ends it; nil: it does not end by itself

	mu     sync.Mutex // guards the following, and is held while one is started
	held   *held      // nil: none was started yet
	closed bool
}

// live returns the run, which it starts where there is none. The end of one is said once, in place of
// the call that finds it: what was in it is gone.
func (b *sandbox) live(ctx context.Context) (*held, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return nil, errEnding
	case b.held != nil && !b.held.ended():
		return b.held, nil
	case b.held != nil:
		return nil, b.over(ctx, b.held)
	}
	spec, err := b.server.Spec()
	if err != nil {
		return nil, err
	}
	spec.Remove = spec.Remove || spec.Files.Workspace == ""
	h, err := b.server.hold(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("the sandbox cannot be started: %w", err)
	}
	b.server.Report("the sandbox " + spec.Name + " has started")
	b.held = h
	return h, nil
}

// over is the error for the end of a run. The next call starts another one.
func (b *sandbox) over(ctx context.Context, h *held) error {
	if b.held == h {
		b.held = nil
	}
	err := &agent.Error{Kind: agent.KindConflict, Message: "the sandbox has ended: " + b.server.ending(h),
		Hint: "the next call starts a new one; files that were in it are gone"}
	if n, _ := b.server.unapplied(ctx, h); n > 0 {
		err.Hint = "the next call starts a new one; the changes of the workspace are kept in " + h.spec.Name + ", and the user can write them back with clove apply " + h.spec.Name
	}
	return err
}

// last is the run, also one that has ended; nil: none was started.
func (b *sandbox) last() *held {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

func (b *sandbox) close(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	if b.held == nil {
		return nil
	}
	return b.server.settle(ctx, b.held)
}

// seconds is a time of a call, as its arguments have it; 0: DefaultTimeout.
type seconds int

func (t seconds) duration() (time.Duration, error) {
	if t < 0 || time.Duration(t)*time.Second > tools.MaxTimeout {
		return 0, wrong("use 1 to 3600", "timeout_seconds is %d", t)
	}
	if t == 0 {
		return tools.DefaultTimeout, nil
	}
	return time.Duration(t) * time.Second, nil
}

// late is how long a process may take to end behind its time: TERM, the run's grace, KILL.
const late = time.Minute

// endSeen is how long the end of a run may take to be known where a session of it was lost.
const endSeen = 2 * time.Second

// exec runs a process in the sandbox. Its failure is in the answer.
func (b *sandbox) exec(ctx context.Context, e agent.Exec, timeout seconds, input []byte) (answer, error) {
	within, err := timeout.duration()
	if err != nil {
		return answer{}, err
	}
	h, err := b.live(ctx)
	if err != nil {
		return answer{}, err
	}
	e.Timeout, e.KillRest = within, true
	ctx, cancel := context.WithTimeout(ctx, within+late)
	defer cancel()
	var all output
	result, err := b.server.Cloved.Exec(ctx, api.ExecParams{RunParams: api.RunParams{Run: string(h.spec.ID)}, Exec: e}, input, func(piece api.SessionOutput) error {
		all.write(piece.Data)
		return nil
	})
	a := answer{}
	a.text, a.left = all.text()
	// The end of the run may be the reason of both: for memory, it ends behind its process.
	if err != nil || result.ExitCode == agent.ExitKilled {
		select {
		case <-h.done:
			b.mu.Lock()
			defer b.mu.Unlock()
			return a, b.over(context.WithoutCancel(ctx), h)
		case <-time.After(endSeen):
		case <-ctx.Done():
		}
	}
	if err != nil {
		return a, err
	}
	switch {
	case result.Failure != nil:
		a.failed = result.Failure.Message
		if result.ExitCode == agent.ExitTimeout {
			a.failed = fmt.Sprintf("it was ended after %s, with all that it started; timeout_seconds gives it more", within)
		}
	case result.ExitCode != 0:
		a.failed = fmt.Sprintf("exit status %d", result.ExitCode)
	}
	if refused := h.refusals(); refused != "" {
		a.text += "\n[network: " + refused + "]\n"
	}
	return a, nil
}
