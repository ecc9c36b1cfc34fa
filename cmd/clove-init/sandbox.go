package main

import (
	"cmp"
	"runtime/debug"
	"time"

	"clove.run/clove/internal/initproto"
	"golang.org/x/sys/unix"
)

// killAgain is how often the rest is killed again until nobody is left. One
// round is enough for all that forks (fork(2) fails while a KILL is pending);
// more are for a process that enters the namespace from outside meanwhile.
const killAgain = 100 * time.Millisecond

// sandbox is PID 1's view of the run. Only run touches it.
type sandbox struct {
	agent    *agentProcess
	children *reaper
	commands <-chan initproto.Message // closed: the supervisor is gone
	deadline *alarm
	grace    *alarm
	again    *time.Ticker // while killing

	wallClock time.Duration // 0: no deadline
	stopGrace time.Duration
	stopWith  unix.Signal // asks to end

	started  bool
	early    []unix.Signal         // came before the agent was there
	failure  *initproto.ExecFailed // the agent never executed
	stopping bool                  // stopWith was sent to all
	killing  bool                  // KILL was sent to all
	killedNS int64                 // CLOCK_BOOTTIME after that
	cause    initproto.Cause       // the first one
	end      ending                // of the agent's first process
}

// newSandbox acquires all that the run will need, and lets the agent go.
// Nothing may be missing later: an agent that holds every process or all
// memory of its limits must not be able to stop its own deadline.
func newSandbox(conn *initproto.Conn, agent *agentProcess, orders *initproto.Orders) (*sandbox, *initproto.ExecFailed) {
	if err := orders.Validate(); err != nil {
		return nil, startFailed("orders", err)
	}
	deadline, err := newAlarm()
	if err != nil {
		return nil, startFailed("clock", err)
	}
	grace, err := newAlarm()
	if err != nil {
		return nil, startFailed("clock", err)
	}
	if err := agent.order(orders); err != nil {
		return nil, startFailed("orders", err)
	}
	again := time.NewTicker(killAgain)
	again.Stop()
	return &sandbox{
		agent: agent, children: reap(agent.pid), commands: receive(conn),
		deadline: deadline, grace: grace, again: again,
		wallClock: orders.WallClock, stopGrace: orders.StopGrace, stopWith: cmp.Or(unix.Signal(orders.StopSignal), unix.SIGTERM),
	}, nil
}

// receive hands on the supervisor's commands until the connection ends, breaks
// or brings anything else, which is all the same: the lifeline is lost.
func receive(conn *initproto.Conn) <-chan initproto.Message {
	commands := make(chan initproto.Message)
	go func() {
		defer close(commands)
		for {
			m, err := conn.Receive()
			if err != nil || (m.Signal == nil && m.Stop == nil && m.Extend == nil) {
				return
			}
			commands <- m
		}
	}()
	return commands
}

// run decides everything until no process but PID 1 is left, and returns the
// last message.
func (s *sandbox) run(report *report) initproto.Message {
	for {
		select {
		case outcome := <-s.agent.launched:
			s.onLaunch(outcome, report)
		case m, ok := <-s.commands:
			s.onCommand(m, ok, report)
		case <-s.deadline.passed:
			if s.deadline.left() <= 0 { // else it was set anew after it passed
				s.stop(initproto.CauseDeadline, s.stopGrace)
			}
		case <-s.grace.passed:
			s.kill()
		case <-s.again.C:
			signalAll(unix.SIGKILL)
		case end := <-s.children.agent:
			s.onEnd(end)
			// The agent's end is everybody's, unless they were asked to end:
			// then each has its grace.
			if !s.stopping {
				s.kill()
			}
		case <-s.children.none:
			return s.last(report)
		}
	}
}

func (s *sandbox) onLaunch(outcome launchOutcome, report *report) {
	s.agent.launched = nil
	if outcome.failure != nil {
		s.failure = outcome.failure
		return
	}
	s.started = true
	s.agent.startedNS = outcome.bootTimeNS
	s.catchUp()
	if s.wallClock > 0 {
		s.deadline.set(s.wallClock - time.Duration(bootTimeNS()-outcome.bootTimeNS))
	}
	report.send(initproto.Message{Started: &initproto.Started{
		PID: s.agent.pid, BootTimeNS: outcome.bootTimeNS, Spent: outcome.spent, Terminal: outcome.terminal}})
	if outcome.terminal != nil {
		outcome.terminal.Close() // the supervisor's now: its end is the terminal's end
	}
	debug.FreeOSMemory() // the start's garbage, off the agent's path
}

// onEnd notes the end of the agent's first process. One that comes after the
// deadline is the deadline's, also where PID 1 came too late to ask for it: who
// uses all of its CPU limit keeps PID 1 waiting, and the supervisor kills in time.
func (s *sandbox) onEnd(end ending) {
	if s.wallClock > 0 && s.deadline.dueNS != 0 && end.bootTimeNS >= s.deadline.dueNS {
		s.blame(initproto.CauseDeadline)
	}
	s.end = end
}

// catchUp tells the agent what came before it was there. What becomes the agent
// ignores every signal at its beginning, as PID 1 does, and leads no group yet:
// a TERM that met it then is lost.
func (s *sandbox) catchUp() {
	for _, number := range s.early {
		s.agent.signal(number)
	}
	if s.stopping {
		signalAll(s.stopWith)
	}
}

func (s *sandbox) onCommand(m initproto.Message, ok bool, report *report) {
	switch {
	case !ok:
		s.commands = nil
		s.blame(initproto.CauseLifeline)
		s.kill()
	case m.Signal != nil && s.agent.launched != nil:
		s.early = append(s.early, m.Signal.Number)
	case m.Signal != nil:
		s.agent.signal(m.Signal.Number)
	case m.Stop != nil:
		s.stop(initproto.CauseStop, m.Stop.Grace)
	case m.Extend != nil:
		report.send(initproto.Message{Extended: &initproto.Extended{
			WallClock: m.Extend.WallClock, Accepted: s.extend(m.Extend.WallClock)}})
	}
}

// never is further away than any host lasts.
const never = 200 * 365 * 24 * time.Hour

// extend gives the run another wall clock, unless that is over or the end has
// begun.
func (s *sandbox) extend(wallClock time.Duration) bool {
	left := wallClock - time.Duration(bootTimeNS()-s.agent.startedNS)
	if wallClock == 0 {
		left = never
	}
	if !s.started || s.stopping || s.killing || left <= 0 {
		return false
	}
	s.wallClock = wallClock
	s.deadline.set(left)
	return true
}

// stop asks everybody to end. CONT wakes those that could not hear it.
func (s *sandbox) stop(cause initproto.Cause, grace time.Duration) {
	s.blame(cause)
	if !s.stopping {
		s.stopping = true
		signalAll(s.stopWith)
		signalAll(unix.SIGCONT)
		s.grace.set(grace)
	} else if grace < s.grace.left() {
		s.grace.set(grace)
	}
}

// kill ends everybody, stopped or not.
func (s *sandbox) kill() {
	if s.killing {
		return
	}
	s.killing = true
	s.children.killing.Store(true)
	signalAll(unix.SIGKILL)
	s.killedNS = bootTimeNS()
	s.again.Reset(killAgain)
}

// blame keeps the first cause, and none that came after the agent's own end.
func (s *sandbox) blame(cause initproto.Cause) {
	if s.cause == initproto.CauseSelf && s.end.bootTimeNS == 0 {
		s.cause = cause
	}
}

// last makes the last message once nobody is left. Two events may still wait
// in their channels, because select takes any that is ready.
func (s *sandbox) last(report *report) initproto.Message {
	if s.agent.launched != nil {
		s.onLaunch(<-s.agent.launched, report)
	}
	if s.end.bootTimeNS == 0 {
		s.onEnd(<-s.children.agent)
	}
	if s.failure != nil && s.cause == initproto.CauseSelf {
		return initproto.Message{ExecFailed: s.failure}
	}
	exited := &initproto.Exited{Code: s.end.status.ExitStatus(), CoreDumped: s.end.status.CoreDump(),
		Cause: s.cause, Leftover: int(s.children.leftover.Load())}
	if s.end.status.Signaled() {
		exited.Signal = s.end.status.Signal()
	}
	if s.started {
		exited.WallNS = max(0, s.end.bootTimeNS-s.agent.startedNS)
		exited.ExecutedNS = max(0, cmp.Or(s.killedNS, bootTimeNS())-s.agent.startedNS)
	}
	return initproto.Message{Exited: exited}
}

// signalAll reaches every process of the namespace but PID 1. It fails only
// where there is none.
func signalAll(number unix.Signal) { _ = unix.Kill(-1, number) }
