package runtime

import (
	"syscall"
	"time"

	"clove.run/clove/agent"
)

// Live is the handle of a running agent, in the process that supervises it. Its methods are
// safe from any goroutine; once the agent has ended they fail with KindConflict.
type Live struct {
	asks  chan<- func()   // to the supervisor's loop
	ended <-chan struct{} // closed behind the loop
	s     *supervisor     // touched in the loop only
}

// errEnded is the error of every method after the agent's end.
func errEnded() error {
	return &agent.Error{Kind: agent.KindConflict, Message: "the agent has ended", Hint: "`clove ps -a` shows how"}
}

// do runs f in the supervisor's loop, where everything else happens too. f must not block:
// it holds up the deadline and every other event of the run.
func (l *Live) do(f func() error) error {
	answer := make(chan error, 1)
	select {
	case l.asks <- func() { answer <- f() }:
		return <-answer
	case <-l.ended:
		return errEnded()
	}
}

// Ended is closed once the agent has ended.
func (l *Live) Ended() <-chan struct{} { return l.ended }

// Signal sends the agent a signal. KILL ends all of its processes. One that is
// paused gets it when it is resumed; when too many wait for that, KindBusy.
func (l *Live) Signal(number syscall.Signal) error {
	return l.do(func() error {
		if number == syscall.SIGKILL {
			l.s.end(causeUser, 0)
			return nil
		}
		return l.s.forward(number)
	})
}

// EndByPolicy kills all of the agent's processes; the record says policy-kill, and the reason.
func (l *Live) EndByPolicy(reason string) error {
	return l.do(func() error {
		if l.s.seen.cause == causeNone {
			l.s.seen.reason = reason
		}
		l.s.end(causePolicy, 0)
		return nil
	})
}

// Stop ends the agent: TERM, the grace, then KILL of all. It returns at once.
// A paused one is resumed for it.
func (l *Live) Stop(grace time.Duration) error {
	return l.do(func() error { l.s.end(causeUser, grace); return nil })
}
