package main

import (
	"cmp"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/boottime"
	"clove.run/clove/internal/initproto"
)

// killAgain is how often the remaining processes are killed again. One round kills
// everything that forks, because fork(2) fails with a SIGKILL pending. More are for
// processes that enter the namespace from outside (clove exec).
const killAgain = 100 * time.Millisecond

// sandbox is PID 1's state of the run. Only run accesses it, so it needs no lock.
type sandbox struct {
	agent    *agentProcess
	children *reaper
	commands <-chan initproto.Message // closed when the supervisor is gone
	deadline *boottime.Alarm
	grace    *boottime.Alarm
	again    *time.Ticker // while killing

	wallClock time.Duration // 0: no deadline
	stopGrace time.Duration
	stopWith  unix.Signal // the signal that requests the end

	started  bool
	early    []unix.Signal         // signals received before the agent executed
	failure  *initproto.ExecFailed // set if the agent never executed
	stopping bool                  // stopWith was sent to all
	killing  bool                  // SIGKILL was sent to all
	killedNS int64                 // CLOCK_BOOTTIME after that
	cause    initproto.Cause       // the first one
	end      ending                // of the agent's first process
}

// newSandbox acquires everything that the run will need and then starts the agent. Nothing
// may be acquired later: an agent that uses up its processes or memory must not be able to
// stop its own deadline.
func newSandbox(conn *initproto.Conn, agent *agentProcess, orders *initproto.Orders) (*sandbox, *initproto.ExecFailed) {
	if err := orders.Validate(); err != nil {
		return nil, startFailed("orders", err)
	}
	// Before the second stage has its orders, so before any process of the agent exists.
	if err := restrict(orders.Init); err != nil {
		return nil, startFailed("filter", err)
	}
	deadline, err := boottime.New()
	if err != nil {
		return nil, startFailed("clock", err)
	}
	grace, err := boottime.New()
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

// receive forwards the supervisor's commands until the connection ends, fails or brings any
// other message. All three mean that the supervisor is lost. Its goroutine lives until
// then.
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

// run is the event loop. It makes all decisions until no process but PID 1 is left, and
// returns the last message.
func (s *sandbox) run(report *report) initproto.Message {
	for {
		select {
		case outcome := <-s.agent.launched:
			s.onLaunch(outcome, report)
		case m, ok := <-s.commands:
			s.onCommand(m, ok, report)
		case <-s.deadline.Fired:
			if s.deadline.Left() <= 0 { // else it was extended after it fired
				s.stop(initproto.CauseDeadline, s.stopGrace)
			}
		case <-s.grace.Fired:
			s.kill()
		case <-s.again.C:
			signalAll(unix.SIGKILL)
		case end := <-s.children.agent:
			s.onEnd(end)
			// The end of the first process ends all others, unless they were already
			// requested to stop: then each has the grace period.
			if !s.stopping {
				s.kill()
			}
		case <-s.children.none:
			return s.last(report)
		}
	}
}

// onLaunch handles the end of the second stage: the agent executes, or it never will.
func (s *sandbox) onLaunch(outcome launchOutcome, report *report) {
	s.agent.launched = nil
	if outcome.failure != nil {
		s.failure = outcome.failure
		return
	}
	s.started = true
	s.agent.startedNS = outcome.bootTimeNS
	s.catchUp()
	// The clock counts from the moment that the second stage reported, not from now: PID 1
	// may have waited for CPU time.
	if s.wallClock > 0 {
		s.deadline.SetAfter(s.wallClock - time.Duration(boottime.NowNS()-outcome.bootTimeNS))
	}
	report.send(initproto.Message{Started: &initproto.Started{
		PID: s.agent.pid, BootTimeNS: outcome.bootTimeNS, Spent: outcome.spent, Terminal: outcome.terminal}})
	if outcome.terminal != nil {
		outcome.terminal.Close() // the supervisor has it now, and its close must hang up the terminal
	}
	debug.FreeOSMemory() // the memory of the start counts as the agent's
}

// onEnd records the end of the agent's first process. An end after the deadline counts as
// the deadline's, even if PID 1 did not send the stop signal in time: an agent at its CPU
// limit delays PID 1, which shares the limit, and then the supervisor kills in time.
func (s *sandbox) onEnd(end ending) {
	if s.wallClock > 0 && s.deadline.DueNS != 0 && end.bootTimeNS >= s.deadline.DueNS {
		s.blame(initproto.CauseDeadline)
	}
	s.end = end
}

// catchUp sends the agent the signals that came before it executed. Until then the second
// stage ignores every signal, as PID 1 does, and leads no process group, so the signals
// would have been lost.
func (s *sandbox) catchUp() {
	for _, number := range s.early {
		s.agent.signal(number)
	}
	if s.stopping {
		signalAll(s.stopWith)
	}
}

// onCommand carries out a command of the supervisor, or handles its loss.
func (s *sandbox) onCommand(m initproto.Message, ok bool, report *report) {
	switch {
	case !ok:
		// A closed channel would be ready for ever.
		s.commands = nil
		s.blame(initproto.CauseLifeline)
		s.kill()
	// The agent does not execute yet; catchUp sends the signal later.
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

// never is beyond the lifetime of any host.
const never = 200 * 365 * 24 * time.Hour

// extend changes the wall clock limit, unless the new one has passed already or the end has begun.
func (s *sandbox) extend(wallClock time.Duration) bool {
	left := wallClock - time.Duration(boottime.NowNS()-s.agent.startedNS)
	if wallClock == 0 {
		left = never
	}
	// Once the end has begun, more time would contradict the signal that was sent.
	if !s.started || s.stopping || s.killing || left <= 0 {
		return false
	}
	s.wallClock = wallClock
	s.deadline.SetAfter(left)
	return true
}

// stop requests every process to end. SIGCONT resumes stopped ones, which could not handle
// the signal otherwise.
func (s *sandbox) stop(cause initproto.Cause, grace time.Duration) {
	s.blame(cause)
	if !s.stopping {
		s.stopping = true
		signalAll(s.stopWith)
		signalAll(unix.SIGCONT)
		s.grace.SetAfter(grace)
	} else if grace < s.grace.Left() {
		s.grace.SetAfter(grace)
	}
}

// kill ends every process, stopped ones included.
func (s *sandbox) kill() {
	// The first kill's time is what counts, and the ticker repeats the signal.
	if s.killing {
		return
	}
	s.killing = true
	s.children.killing.Store(true)
	signalAll(unix.SIGKILL)
	s.killedNS = boottime.NowNS()
	s.again.Reset(killAgain)
}

// blame records the first cause, and none after the agent's own end.
func (s *sandbox) blame(cause initproto.Cause) {
	if s.cause == initproto.CauseSelf && s.end.bootTimeNS == 0 {
		s.cause = cause
	}
}

// last makes the last message once no other process is left. Two events may still be in
// their channels, because select picks any ready case.
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
		exited.ExecutedNS = max(0, cmp.Or(s.killedNS, boottime.NowNS())-s.agent.startedNS)
	}
	return initproto.Message{Exited: exited}
}

// signalAll signals every process of the namespace except PID 1. It fails only if there is none.
func signalAll(number unix.Signal) { _ = unix.Kill(-1, number) }
