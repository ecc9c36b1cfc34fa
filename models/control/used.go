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

// fly counts calls that are under way, and returns how many are.
func (s *served) fly(more int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flying += more
	return s.flying
}

// spent returns what the run's calls have used, for its record. Calls that are under way
// come to their end first.
func (s *served) spent() []agent.ModelUse {
	for deadline := time.Now().Add(settleTime); s.fly(0) > 0 && time.Now().Before(deadline); time.Sleep(settlePoll) {
	}
	return s.total()
}
