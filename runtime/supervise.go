package runtime

import (
	"context"
	"time"

	"clove.run/clove/agent"
)

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
	s.share.meterLast(s.readMeters)
	// Its result must be handled in this goroutine: it calls Started, which the end of the
	// run must not overtake.
	if s.noting != nil {
		s.onNoted(<-s.noting)
	}
	s.seen.terminal = s.terminal
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
		case <-above{s}.due():
			above{s}.onDue()
		case <-s.parentGone:
			above{s}.onGone()
		case <-s.last.C:
			s.seen.blame(causeDeadline)
			s.killNow()
		case <-s.again.C:
			s.killNow()
		case signal := <-signals.incoming:
			s.pass(signal, signals)
		case standing := <-s.standings:
			s.onStanding(standing)
		case <-s.metered.C:
			s.share.meter(s.readMeters)
			s.grantNetwork()
		case err := <-s.share.reported():
			s.share.onMetered(err)
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
			s.boundStart(nil)
		}
	}
}

// deniedEvery is how long denials are gathered for one write to the store.
const deniedEvery = time.Second
