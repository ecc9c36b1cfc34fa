package runtime

import "sync/atomic"

// refusals counts what the agent was refused: calls, and connections by the gate. Who
// counts never waits for the supervisor's loop.
type refusals struct {
	count atomic.Int64
	news  chan struct{} // has an element while the loop has not looked
}

func newRefusals() *refusals { return &refusals{news: make(chan struct{}, 1)} }

func (r *refusals) add() {
	r.count.Add(1)
	select {
	case r.news <- struct{}{}:
	default: // the loop will see this one too
	}
}

// onRefusal does what the run says of refusals.
func (s *supervisor) onRefusal() {
	what, after, err := s.spec.Kernel.Denial()
	switch {
	case err != nil || s.refusals.count.Load() < int64(after):
	case what == "end":
		s.end(causePolicy, 0)
	case what == "pause":
		_ = s.freezer.pause(s.seen.cause != causeNone) // an error: it is paused already, or ends
	}
}
