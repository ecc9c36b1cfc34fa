package runtime

import (
	"context"
	"os"
	"syscall"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/internal/boottime"
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

// Redraw has the program on the agent's terminal draw it again: the terminal is one row smaller for a moment.
func (l *Live) Redraw() error {
	err := l.do(func() error { l.s.terminal.shrink(); return nil })
	if err == nil {
		time.Sleep(RedrawTime)
		err = l.do(func() error { l.s.terminal.resize(); return nil })
	}
	return err
}

// RedrawTime is for a program to see that its terminal has become smaller. One that sees only the end of it draws again
// as well, or has drawn nothing.
const RedrawTime = 50 * time.Millisecond

// EndBy kills all of the agent's processes; the record says policy-kill, or with budget set budget, and
// the reason.
func (l *Live) EndBy(budget bool, reason string) error {
	why := causePolicy
	if budget {
		why = causeBudget
	}
	return l.do(func() error {
		if budget {
			l.s.seen.blameBudget(agent.LimitHit{Name: agent.LimitSignal})
		}
		if l.s.seen.cause == causeNone {
			l.s.seen.reason = reason
		}
		l.s.end(why, 0)
		return nil
	})
}

// EndIdle ends the agent as Stop does, with the grace of the run. The record says idle, and for how long it had waited.
func (l *Live) EndIdle() error {
	return l.do(func() error {
		if l.s.seen.cause == causeNone {
			l.s.seen.reason = "its agent only waited for mail or jobs, for " + l.s.spec.Kernel.Idle.String()
		}
		l.s.end(causeIdle, l.s.spec.Limits.StopGrace)
		return nil
	})
}

// Stop ends the agent: TERM, the grace, then KILL of all. It returns at once.
// A paused one is resumed for it.
func (l *Live) Stop(grace time.Duration) error {
	return l.do(func() error { l.s.end(causeUser, grace); return nil })
}

// Pause stops every process of the agent until Resume, without a signal that
// it could see. The wall clock goes on and ends it also while it is paused;
// clove-init is frozen with the rest, so the supervisor keeps that clock.
func (l *Live) Pause() error {
	return l.do(func() error {
		if err := l.s.spent("pause"); err != nil {
			return err
		}
		return l.s.freezer.pause(l.s.seen.cause != causeNone)
	})
}

// Resume lets a paused agent go on; one that is not paused is a KindConflict.
func (l *Live) Resume() error {
	return l.do(func() error {
		if err := l.s.spent("resume"); err != nil {
			return err
		}
		return l.s.freezer.resume()
	})
}

// maxHold bounds how long an agent is frozen for a reader of its layer.
const maxHold = 2 * time.Minute

// Layer calls use with the layer of the agent, which is frozen meanwhile, so that
// everything that is read belongs to one moment. The agent's wall clock goes on. The ctx
// that use gets ends when the agent has to run again: at its end, at its deadline, or after
// maxHold.
func (l *Live) Layer(ctx context.Context, use func(ctx context.Context, layer *os.File) error) error {
	ctx, cancel := context.WithTimeout(ctx, maxHold)
	defer cancel()
	h := &hold{release: cancel}
	var layer *os.File
	var ended func()
	err := l.do(func() error {
		if err := l.s.freezer.hold(h, l.s.seen.cause != causeNone); err != nil {
			return err
		}
		layer, ended = l.s.tree.Layer(), l.s.beginSession()
		return nil
	})
	if err != nil {
		return err
	}
	defer ended()
	defer l.do(func() error { return l.s.freezer.letGo(h) }) // an agent that has ended is still anyway
	go func() {
		select {
		case <-l.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	return use(ctx, layer)
}

// Stats returns what the agent uses now.
func (l *Live) Stats() (stats agent.Stats, err error) {
	err = l.do(func() (err error) { stats, err = l.s.stats(); return err })
	return stats, err
}

func (s *supervisor) stats() (agent.Stats, error) {
	figures, err := s.group.Stats()
	if err != nil {
		return agent.Stats{}, agent.Failed("stats", err)
	}
	figures = figures.Since(launchUse(s.seen.spent))
	seen := outcome{cpu: figures.CPU, spent: s.seen.spent, output: s.pipes.written.Load()}
	if s.tree != nil {
		if used, err := s.tree.Usage(); err == nil {
			seen.diskUsed = &used.Bytes
		}
	}
	now := agent.Stats{
		Time: time.Now().UTC(), Paused: s.freezer.paused, WallMS: time.Duration(boottime.NowNS() - s.began).Milliseconds(),
		MemoryBytes: figures.MemoryBytes, Pids: figures.Pids,
		Usage: usage(seen, figures), Events: events(seen, figures), Limits: s.spec.Limits,
	}
	if s.gate != nil {
		totals := s.gate.Totals()
		now.Usage.NetRxBytes, now.Usage.NetTxBytes = &totals.RxBytes, &totals.TxBytes
	}
	return now, nil
}
