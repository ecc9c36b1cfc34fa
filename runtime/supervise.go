package runtime

import (
	"context"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/cgroups"
	"clove.run/clove/internal/initproto"
	"clove.run/clove/rootfs"
)

// supervisor is the event loop of one run: everything that can happen to it
// arrives here, one at a time, and the first cause wins.
type supervisor struct {
	// The launch's own. Update changes them, and the record has what they are last.
	spec *agent.Spec
	run  *agent.Run
	held *enforcement

	// Made by the launch, and used by the loop alone until it ends.
	paths    Paths
	probes   *probes
	streams  IO
	pipes    *streams
	conn     *initproto.Conn
	box      *sandbox
	group    *cgroups.Group
	tree     *rootfs.Tree
	gate     *gated // nil: none
	entrance *entrance
	admitted chan error // nil unless the agent's filter could not be seen
	sessions *sync.WaitGroup

	seen     outcome
	messages <-chan initproto.Message // closed when clove-init is gone
	oom      <-chan struct{}
	share    *share // nil: the run has no part in what agents share
	stands   <-chan api.Standing
	metered  *time.Ticker
	refusals *refusals
	denials  *denials
	denied   *time.Timer  // when to store events of denials; stopped while there are none
	sockets  <-chan int64 // what they hold, from socketWatch
	cpu      *time.Timer  // next look at the CPU clock; stopped without a limit
	over     *time.Timer  // deadline or stop, and grace, are over
	last     *time.Timer  // clove's own end of both, behind clove-init's
	graceEnd time.Time    // of a stop; zero: none was asked for
	began    int64        // CLOCK_BOOTTIME of the agent's start, nanoseconds; 0: not started
	terminal *terminal
	// terminals are those of exec sessions.
	terminals map[*terminal]bool
	gateEnd   <-chan error // why the gate ended; nil: there is none to watch
	asks      chan func()  // what others want to be done here, see Live
	ended     chan struct{}
	freezer   freezer
	due       *time.Timer // the wall clock's end, for an agent that is frozen then
	noting    chan error  // of a note under way that the agent runs; nil: none is
	note      *time.Timer // when to note it again; stopped once it is
	noted     bool        // the first note has ended, well or not
	starting  *time.Timer // when to give the start up; stopped once the agent executes
	wanted    error       // why the start is to end; nil: it is not
}

// supervisorOf is a supervisor with what it takes over from a launch, and no clocks.
func supervisorOf(l *launch) *supervisor {
	return &supervisor{
		spec: &l.spec, run: &l.run, held: &l.held, paths: l.runtime.paths, probes: l.probes, streams: l.streams, pipes: l.pipes,
		conn: l.conn, box: l.box, group: l.group, tree: l.tree, gate: l.gate, sessions: &l.sessions,
		entrance: &entrance{l.runtime.init, l.thread, l.box, l.filters, l.calls, l.ruleset},
		freezer:  freezer{name: l.spec.Name, group: l.group, holds: map[*hold]bool{}},
	}
}

// newSupervisor has no clock running yet, but for the start's.
func newSupervisor(l *launch) *supervisor {
	s := supervisorOf(l)
	s.messages, s.asks, s.ended, s.terminals = receive(l.conn), make(chan func()), make(chan struct{}), map[*terminal]bool{}
	s.admitted = make(chan error, 1)
	s.cpu, s.over, s.last, s.due, s.note = stoppedTimer(), stoppedTimer(), stoppedTimer(), stoppedTimer(), stoppedTimer()
	s.refusals, s.denials, s.denied = l.refusals, l.denials, stoppedTimer()
	s.metered = time.NewTicker(time.Hour)
	s.metered.Stop()
	s.starting = time.NewTimer(l.spec.StartBound())
	if l.gate != nil {
		s.gateEnd = l.gate.Lost()
	}
	if l.share != nil {
		s.share, s.stands = l.share, l.share.stands
		s.metered.Reset(meterEvery)
	}
	return s
}

// close ends what newSupervisor began, and the calls of Live that still wait.
func (s *supervisor) close() {
	for _, timer := range []*time.Timer{s.cpu, s.over, s.last, s.due, s.note, s.starting, s.denied} {
		timer.Stop()
	}
	s.metered.Stop()
	close(s.ended)
}

// beginSession keeps the teardown waiting until the session has ended. It is called
// in the loop, so it cannot race with the teardown's Wait, which comes after the loop.
func (s *supervisor) beginSession() (ended func()) {
	s.sessions.Add(1)
	return s.sessions.Done
}

// supervise watches from the orders to the end of the last process.
func (l *launch) supervise(ctx context.Context, signals *signals) outcome {
	watching, cancel := context.WithCancel(context.Background())
	defer cancel()
	oom, err := l.group.WatchOOM(watching)
	if err != nil {
		killAll(l.group)
		return outcome{startError: agent.Failed("watch memory", err)}
	}
	looked := make(chan struct{})
	seen := l.attend(ctx, signals, oom, l.sockets.start(watching, looked))
	cancel()
	<-looked
	return seen
}

// attend runs the supervisor's loop, with the two watches that supervise has opened.
func (l *launch) attend(ctx context.Context, signals *signals, oom <-chan struct{}, sockets <-chan int64) outcome {
	s := newSupervisor(l)
	defer s.close()
	s.oom, s.sockets = oom, sockets
	for _, early := range signals.early {
		s.pass(early, signals)
	}
	s.watch(ctx.Done(), signals)
	s.meterLast()
	// Its result must be handled in this goroutine: it calls Started, which the end of the
	// run must not overtake.
	if s.noting != nil {
		s.onNoted(<-s.noting)
	}
	s.terminal.restore()
	return s.seen
}

// watch is the loop: it returns when clove-init is gone, and with it the agent.
// done is closed when the agent is to end.
func (s *supervisor) watch(done <-chan struct{}, signals *signals) {
	for s.messages != nil {
		select {
		case m, open := <-s.messages:
			s.onMessage(m, open)
		case <-s.oom:
			// The kernel may have killed one process only; an agent that is out of memory
			// ends as a whole.
			// One kill is enough; the count for the record is read at the end.
			s.oom = nil
			s.killNow()
		case held := <-s.sockets:
			s.checkSockets(held)
		case <-s.pipes.exceeded:
			// A closed channel is always ready, and the loop would spin on it.
			s.pipes.exceeded = nil
			s.end(causeOutput, 0)
		case <-s.cpu.C:
			s.checkCPU()
		case <-s.due.C:
			s.freezer.thaw() // clove-init is frozen with the rest; it does what is due
		case <-s.note.C:
			s.noteStarted()
		case err := <-s.noting:
			s.onNoted(err)
		case <-s.starting.C:
			s.giveUp()
		case <-s.over.C:
			s.killAgent()
		case <-s.last.C:
			s.seen.blame(causeDeadline)
			s.killNow()
		case signal := <-signals.incoming:
			s.pass(signal, signals)
		case standing := <-s.stands:
			s.onStanding(standing)
		case <-s.metered.C:
			s.meter()
			s.grantNetwork()
		case err := <-s.share.reported():
			s.onMetered(err)
		case err := <-s.admitted:
			s.onAdmitted(err)
		case <-s.refusals.news:
			s.onRefusal()
		case <-s.denials.news:
			s.denied.Reset(deniedEvery)
		case <-s.denied.C:
			s.denials.storeAside(s.paths.withStore)
		case reason := <-s.gateEnd:
			s.gateEnd = nil
			s.gate.lose(reason)
		case ask := <-s.asks:
			ask()
		case <-done:
			done = nil
			s.end(causeUser, s.spec.Limits.StopGrace)
			s.hurry(nil)
		}
	}
}

// deniedEvery is how long denials are gathered for one write to the store.
const deniedEvery = time.Second

// receive turns the control socket into a channel that ends with clove-init.
func receive(conn *initproto.Conn) <-chan initproto.Message {
	messages := make(chan initproto.Message, 4) // room for what it sends without being asked
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

// stoppedTimer is a timer for Reset to start: a select needs its channel from the
// beginning.
func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}
