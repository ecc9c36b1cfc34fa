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

// spent returns what the run's calls have used, for its record. Calls that are under way
// come to their end first.
func (s *served) spent() []agent.ModelUse {
	for deadline := time.Now().Add(settleTime); s.busy() && time.Now().Before(deadline); time.Sleep(settlePoll) {
	}
	return s.total()
}
