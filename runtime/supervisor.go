package runtime

import (
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/cgroups"
	"clove.run/clove/internal/boottime"
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
	sum      *cgroups.Group // of it and all that it starts; nil: it starts none
	tree     *rootfs.Tree
	gate     *gated // nil: none
	entrance *entrance
	admitted chan error // nil unless the agent's filter could not be seen
	sessions *sync.WaitGroup
	programs *net.UnixListener // over which programs of tools come; nil: the agent may call none

	seen      outcome
	messages  <-chan initproto.Message // closed when clove-init is gone
	oom       <-chan struct{}
	share     *share // nil: the run has no part in what agents share
	standings <-chan api.Standing
	metered   *time.Ticker
	refusals  *refusals
	denials   *denials
	denied    *time.Timer  // when to store events of denials; stopped while there are none
	sockets   <-chan int64 // what they hold, from socketWatch
	cpu       *time.Timer  // next look at the CPU clock; stopped without a limit
	over      *time.Timer  // deadline or stop, and grace, are over
	last      *time.Timer  // clove's own end of both, behind clove-init's
	graceEnd  time.Time    // of a stop; zero: none was asked for
	began     int64        // CLOCK_BOOTTIME of the agent's start, nanoseconds; 0: not started
	terminal  *terminal
	// groups are the cgroups of exec sessions that have ended and left processes.
	groups    []*cgroups.Below
	lastGroup int // number of the last one that was made
	// terminals are those of exec sessions.
	terminals  map[*terminal]bool
	gateEnd    <-chan error // why the gate ended; nil: there is none to watch
	asks       chan func()  // what others want to be done here, see Live
	ended      chan struct{}
	freezer    freezer
	parent     *parent // nil: a person started it
	parentGone <-chan struct{}
	bound      *boottime.Alarm // its deadline; nil: it has none
	notice     time.Duration   // by which the agent is asked to end before the deadline
	due        *time.Timer     // the wall clock's end, for an agent that is frozen then
	again      *time.Timer     // when to kill once more: the last kill has failed
	noting     chan error      // of a note under way that the agent runs; nil: none is
	note       *time.Timer     // when to note it again; stopped once it is
	noted      bool            // the first note has ended, well or not
	starting   *time.Timer     // when to give the start up; stopped once the agent executes
	wanted     error           // why the start is to end; nil: it is not
}

// supervisorOf is a supervisor with what it takes over from a launch, and no clocks.
func supervisorOf(l *launch) *supervisor {
	return &supervisor{
		spec: &l.spec, run: &l.run, held: &l.held, paths: l.runtime.paths, probes: l.probes, streams: l.streams, pipes: l.pipes,
		conn: l.conn, box: l.box, group: l.group, tree: l.tree, gate: l.gate, sessions: &l.sessions, programs: l.programs,
		entrance: &entrance{l.runtime.init, l.thread, l.box, l.filters, l.calls, l.ruleset},
		freezer:  freezer{name: l.spec.Name, group: l.group, sum: l.sum, holds: map[*hold]bool{}},
		sum:      l.sum, parent: l.parent, parentGone: l.parent.ended(), bound: l.bound,
	}
}

// newSupervisor has no clock running yet, but for the start's.
func newSupervisor(l *launch) *supervisor {
	s := supervisorOf(l)
	s.messages, s.asks, s.ended, s.terminals = receive(l.conn), make(chan func()), make(chan struct{}), map[*terminal]bool{}
	s.admitted = make(chan error, 1)
	s.cpu, s.over, s.last, s.due, s.note, s.again = stoppedTimer(), stoppedTimer(), stoppedTimer(), stoppedTimer(), stoppedTimer(), stoppedTimer()
	s.refusals, s.denials, s.denied = l.refusals, l.denials, stoppedTimer()
	s.metered = time.NewTicker(time.Hour)
	s.metered.Stop()
	s.starting = time.NewTimer(l.spec.StartBound())
	if s.bound != nil {
		above{s}.set()
	}
	if l.gate != nil {
		s.gateEnd = l.gate.Lost()
	}
	if l.share != nil {
		s.share, s.standings = l.share, l.share.standings
		s.metered.Reset(meterEvery)
	}
	return s
}

// close ends what newSupervisor began, and the calls of Live that still wait.
func (s *supervisor) close() {
	for _, timer := range []*time.Timer{s.cpu, s.over, s.last, s.due, s.note, s.again, s.starting, s.denied} {
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

// beginGroup makes the cgroup of one exec session.
func (s *supervisor) beginGroup() (*cgroups.Below, error) {
	s.lastGroup++
	return s.group.MakeBelow("session-" + strconv.Itoa(s.lastGroup))
}

// endGroup removes the cgroup of a session that has ended, and those of earlier ones, where no
// process is left. The agent's end removes all.
func (s *supervisor) endGroup(ended *cgroups.Below) {
	s.groups = slices.DeleteFunc(append(s.groups, ended), (*cgroups.Below).RemoveEmpty)
}

// receive turns the control socket into a channel that ends with clove-init.
func receive(conn *initproto.Conn) <-chan initproto.Message {
	messages := make(chan initproto.Message, 4) // space for what it sends without being asked
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
