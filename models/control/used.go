package control

import (
	"time"

	"clove.run/clove/agent"
)

// settleTime bounds the wait for calls of an agent that has ended: their connections are
// gone, so clove-upstream ends them.
const settleTime = 2 * time.Second

// settlePoll is how often spent looks whether they have.
const settlePoll = 5 * time.Millisecond

// fly counts calls that are under way.
func (s *served) fly(more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flying += more
}

// copy counts copies of contents that are not logged.
func (s *served) copy(more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.copying += more
}

func (s *served) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flying+s.copying > 0
}

// tell says that used has changed.
func (s *served) tell() {
	select {
	case s.changed <- struct{}{}:
	default: // it is known
	}
}

// Used returns what the calls of a run that is served have used so far, and a channel with a
// value behind each change; one reader may have it.
func (c *Control) Used(run agent.ID) (soFar func() []agent.ModelUse, changed <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.runs[run]
	if s == nil { // it has ended
		return func() []agent.ModelUse { return nil }, nil
	}
	return s.total, s.changed
}

// spent returns what the run's calls have used, for its record. Calls that are under way
// come to their end first.
func (s *served) spent() []agent.ModelUse {
	for deadline := time.Now().Add(settleTime); s.busy() && time.Now().Before(deadline); time.Sleep(settlePoll) {
	}
	return s.total()
}
