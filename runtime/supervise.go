package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/initproto"
	"clove.run/clove/store"
)

// supervisor is the event loop of one run: everything that can happen to it
// arrives here, one at a time, and the first cause wins.
type supervisor struct {
	*launch
	seen     outcome
	messages <-chan initproto.Message // closed when clove-init is gone
	oom      <-chan struct{}
	sockets  <-chan int64 // see watchSockets
	cpu      *time.Timer  // next look at the CPU clock; stopped without a limit
	over     *time.Timer  // deadline or stop, and grace, are over
	last     *time.Timer  // clove's own end of both, behind clove-init's
	graceEnd time.Time    // of a stop; zero: none was asked for
	began    int64        // CLOCK_BOOTTIME of the agent's start, nanoseconds; 0: not started
	terminal *terminal
	visitors map[*terminal]bool // of Live.Exec
	gateEnd  <-chan error       // why the gate ended; nil: there is none to watch
	asks     chan func()        // what others want to be done here, see Live
	ended    chan struct{}
	paused   bool
	holds    map[*hold]bool // readers for whom it stands still besides
	due      *time.Timer    // the wall clock's end, for an agent that is paused then
	noting   chan error     // of a note under way that the agent runs; nil: none is
	note     *time.Timer    // when to note it again; stopped once it is
	told     bool           // of the first note's end
	starting *time.Timer    // when to give the start up; stopped once the agent executes
	wanted   error          // who wanted the end of the start; nil: nobody
}

// noteRetry is between two attempts at a store that fails: nothing else would
// tell when it works.
const noteRetry = time.Second

// lastResort is how long after clove-init's own deadline and grace clove
// itself kills the cgroup: only if clove-init did not.
const lastResort = 2 * time.Second

// newSupervisor has no clock running yet.
func newSupervisor(l *launch) *supervisor {
	s := &supervisor{
		launch: l, messages: receive(l.conn), asks: make(chan func()), ended: make(chan struct{}),
		cpu: stoppedTimer(), over: stoppedTimer(), last: stoppedTimer(), due: stoppedTimer(), note: stoppedTimer(),
		starting: time.NewTimer(l.spec.StartBound()),
		visitors: map[*terminal]bool{}, holds: map[*hold]bool{},
	}
	if l.gate != nil {
		s.gateEnd = l.gate.Lost()
	}
	return s
}

// close ends what newSupervisor began, and whoever still asks.
func (s *supervisor) close() {
	for _, timer := range []*time.Timer{s.cpu, s.over, s.last, s.due, s.note, s.starting} {
		timer.Stop()
	}
	close(s.ended)
}

// supervise watches from the orders to the end of the last process.
func (l *launch) supervise(ctx context.Context, signals *signals) outcome {
	watching, cancel := context.WithCancel(context.Background())
	defer cancel()
	oom, err := l.group.WatchOOM(watching)
	if err != nil {
		l.killAll()
		return outcome{startError: agent.Failed("watch memory", err)}
	}
	looked := make(chan struct{})
	seen := l.attend(ctx, signals, oom, l.watchSockets(watching, looked))
	cancel()
	<-looked
	return seen
}

// attend is supervise with its two watches.
func (l *launch) attend(ctx context.Context, signals *signals, oom <-chan struct{}, sockets <-chan int64) outcome {
	s := newSupervisor(l)
	defer s.close()
	s.oom, s.sockets = oom, sockets
	for _, early := range signals.early {
		s.pass(early, signals)
	}
	s.watch(ctx.Done(), signals)
	if s.noting != nil {
		s.onNoted(<-s.noting)
	}
	s.terminal.restore()
	return s.seen
}

// watch is the loop: it returns when clove-init is gone, and with it the agent.
// done is closed when somebody wants its end.
func (s *supervisor) watch(done <-chan struct{}, signals *signals) {
	for s.messages != nil {
		select {
		case m, open := <-s.messages:
			s.hear(m, open)
		case <-s.oom:
			// The kernel killed one process; the agent is one thing.
			s.oom = nil
			s.killNow()
		case held := <-s.sockets:
			s.checkSockets(held)
		case <-s.pipes.exceeded:
			s.pipes.exceeded = nil
			s.end(causeOutput, 0)
		case <-s.cpu.C:
			s.checkCPU()
		case <-s.due.C:
			s.thaw() // clove-init is frozen with the rest; it does what is due
		case <-s.note.C:
			s.noteStarted()
		case err := <-s.noting:
			s.onNoted(err)
		case <-s.starting.C:
			s.giveUp()
		case <-s.over.C:
			s.killAgent()
		case <-s.last.C:
			s.blame(causeDeadline)
			s.killNow()
		case signal := <-signals.incoming:
			s.pass(signal, signals)
		case reason := <-s.gateEnd:
			s.gateEnd = nil
			s.loseNetwork(reason)
		case ask := <-s.asks:
			ask()
		case <-done:
			done = nil
			s.end(causeUser, s.spec.Limits.StopGrace)
			s.hurry(nil)
		}
	}
}

// stepExec is what clove-init does behind the launch's own steps, up to the
// agent's execve.
const stepExec = "exec"

// giveUp ends a start that does not come to the agent's execve. What does not end
// then hangs in the kernel, and is left to it.
func (s *supervisor) giveUp() {
	if s.seen.startError != nil {
		s.seen.startError = hungError{s.seen.startError}
		s.messages = nil
		return
	}
	if s.seen.startError = s.wanted; s.wanted == nil {
		s.seen.startError = noProgress(stepExec, s.spec.StartBound())
	}
	s.killInside()
	s.starting.Reset(letGoTime)
}

// hurry bounds what is left of a start when somebody wants its end; received is
// nil where no signal says so.
func (s *supervisor) hurry(received os.Signal) {
	if s.began != 0 || s.seen.startError != nil {
		return
	}
	s.wanted = interrupted(stepExec, received)
	s.starting.Reset(letGoTime)
}

// receive turns the control socket into a channel that ends with clove-init.
func receive(conn *initproto.Conn) <-chan initproto.Message {
	messages := make(chan initproto.Message, 4) // what it says by itself
	go func() {
		defer close(messages)
		for {
			m, err := conn.Receive()
			if err != nil {
				return
			}
			messages <- m
		}
	}()
	return messages
}

func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// hear acts on what clove-init says.
func (s *supervisor) hear(m initproto.Message, open bool) {
	switch {
	case !open:
		s.messages = nil
		if s.began != 0 && !s.seen.exitKnown {
			// clove-init was killed with the rest: nobody else kept the time.
			s.seen.wall = time.Duration(bootTime() - s.began)
		}
	case m.Started != nil:
		s.onStarted(*m.Started)
	case m.ExecFailed != nil:
		f := m.ExecFailed
		s.seen.execFailed = &execFailure{step: f.Step, message: f.Message, errno: f.Errno, exitCode: f.ExitCode}
	case m.Exited != nil:
		s.onExited(*m.Exited)
	}
}

func (s *supervisor) onStarted(m initproto.Started) {
	s.began = m.BootTimeNS
	s.seen.launched, s.seen.spent = true, m.Spent
	s.starting.Stop()
	limits := s.spec.Limits
	s.setDeadline()
	if _, asked := s.held.enforced[agent.ControlCPUTime]; asked {
		s.cpu.Reset(s.untilCPULimit(limits.CPUTime))
	}
	if m.Terminal != nil {
		s.attachTerminal(m.Terminal)
	}
	s.run.PID, s.run.Started = s.box.pid, time.Now()
	// gofail: var startedUnnoted string
	// failpoint(startedUnnoted, "")

	s.noteStarted()
}

// noteStarted tells the store that the agent runs, which waits for the disk and for
// other cloves; the agent may end meanwhile.
func (s *supervisor) noteStarted() {
	noting, id, pid, started := make(chan error, 1), s.spec.ID, s.run.PID, s.run.Started
	go func() {
		noting <- s.runtime.withStore(func(st *store.Store) error {
			_, err := st.Apply(id, agent.EventStarted, func(run *agent.Run) { run.PID, run.Started = pid, started })
			return err
		})
	}()
	s.noting = noting
}

// onNoted shows the agent to others. Until the store knows of it nobody can ask for
// anything but its end, so a failure is told once and the note tried again.
func (s *supervisor) onNoted(err error) {
	s.noting = nil
	if err != nil && agent.KindOf(err) != agent.KindConflict && agent.KindOf(err) != agent.KindNotFound {
		s.note.Reset(noteRetry)
	}
	if s.told {
		return
	}
	s.told = true
	if err != nil {
		// The run goes on: its end is what must not be lost.
		fmt.Fprintf(s.streams.Stderr, "clove: warning: cannot note that %s runs: %v\n", s.spec.Name, err)
	}
	if s.streams.Started != nil {
		s.streams.Started(&Live{asks: s.asks, ended: s.ended, s: s})
	}
}

func (s *supervisor) onExited(m initproto.Exited) {
	s.seen.exitKnown = true
	s.seen.code, s.seen.signal = m.Code, int(m.Signal)
	s.seen.wall = time.Duration(m.WallNS)
	s.noteExecuted(time.Duration(m.ExecutedNS))
	switch m.Cause {
	case initproto.CauseDeadline:
		s.blame(causeDeadline)
	case initproto.CauseLifeline:
		s.blame(causeLifeline)
	case initproto.CauseStop:
		s.blame(causeUser)
	}
}

// bootTime is now on the clock that clove-init counts with.
func bootTime() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0
	}
	return now.Nano()
}

// blame notes why the run ends; the first cause stays.
func (s *supervisor) blame(c cause) {
	if s.seen.cause == causeNone {
		s.seen.cause = c
	}
}

// end stops the agent for a cause: TERM and a grace, or KILL at once. clove-init
// holds the grace, and clove from outside where that one cannot.
func (s *supervisor) end(c cause, grace time.Duration) {
	s.blame(c)
	if grace <= 0 {
		s.killNow()
		return
	}
	// Who is frozen hears nothing.
	if s.send(initproto.Message{Stop: &initproto.Stop{Grace: grace}}) != nil || s.thaw() != nil {
		s.killNow()
		return
	}
	if over := time.Now().Add(grace); s.graceEnd.IsZero() || over.Before(s.graceEnd) {
		s.graceEnd = over
	}
	s.setDeadline()
}

// sendPatience is more than clove-init's socket needs for a few bytes. One that
// stands still may have it full, and all that the loop does would wait for it.
const sendPatience = 100 * time.Millisecond

func (s *supervisor) send(m initproto.Message) error {
	_ = s.conn.SetSendDeadline(time.Now().Add(sendPatience)) // a socket that is gone fails the send as well
	return s.conn.Send(m)
}

// setDeadline arms clove's own clocks: for the wall clock as it stands, and for a
// stop whose grace is over sooner.
func (s *supervisor) setDeadline() {
	for _, timer := range []*time.Timer{s.due, s.over, s.last} {
		timer.Stop()
	}
	limits := s.spec.Limits
	left, bounded := time.Until(s.graceEnd), !s.graceEnd.IsZero()
	if s.began != 0 && limits.WallClock != 0 {
		due := limits.WallClock - time.Duration(bootTime()-s.began)
		s.due.Reset(due)
		if over := due + limits.StopGrace; !bounded || over < left {
			left, bounded = over, true
		}
	}
	if bounded {
		s.over.Reset(left)
		s.last.Reset(left + lastResort)
	}
}

// checkCPU compares the tree's CPU time with its limit, and otherwise looks
// again when the limit could be reached at the earliest. The kernel has no
// event for it.
func (s *supervisor) checkCPU() {
	used, err := s.group.CPUTime()
	if err != nil {
		return // the cgroup is going: so is the agent
	}
	own := used - launchUse(s.seen.spent).Total
	s.seen.cpu = &own
	left := s.spec.Limits.CPUTime - own
	if left <= 0 {
		s.end(causeCPUTime, s.spec.Limits.StopGrace)
		return
	}
	s.cpu.Reset(s.untilCPULimit(left))
}

// untilCPULimit is the time in which the agent can use up left on all of its
// CPUs, and not less than a scheduling period.
func (s *supervisor) untilCPULimit(left time.Duration) time.Duration {
	cpus := float64(onlineCPUs())
	if limit := s.spec.Limits.CPUs; limit > 0 {
		cpus = min(cpus, limit)
	}
	return max(time.Duration(float64(left)/cpus), 10*time.Millisecond)
}

// killNow kills without asking, and notes that nothing executes any more.
func (s *supervisor) killNow() {
	if s.killAll() == nil {
		s.noteExecuted(time.Duration(bootTime() - s.began))
	}
}

// killAgent kills what clove-init is about to kill as well, but clove-init
// shares its CPU limit with the agent, which may leave it little. It stays alive
// and tells how the agent ended.
func (s *supervisor) killAgent() {
	if s.group.KillBut(s.box.pid) == nil {
		s.noteExecuted(time.Duration(bootTime() - s.began))
	}
}

// noteExecuted keeps the earliest moment after which nothing executed.
func (s *supervisor) noteExecuted(d time.Duration) {
	if s.began != 0 && d > 0 && (s.seen.executed == nil || d < *s.seen.executed) {
		s.seen.executed = &d
	}
}

// killTimeout bounds the wait for processes that the kernel cannot end at once.
const killTimeout = 20 * time.Second

// killAll kills every process in the agent's cgroup. It works at any stage of
// the launch and does not depend on clove-init.
func (l *launch) killAll() error {
	if l.group == nil {
		return nil // libcontainer has killed what it started
	}
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	err := l.group.Kill(ctx)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}
