package control

import (
	"maps"
	"slices"
	"sync"
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

// tally is what the calls of a run have used.
type tally struct {
	changed chan struct{} // has a value behind a change, until somebody looks

	mu      sync.Mutex                 // guards the following
	byModel map[string]*agent.ModelUse // by its name
}

func newTally() *tally {
	return &tally{changed: make(chan struct{}, 1), byModel: map[string]*agent.ModelUse{}}
}

// count adds a call.
func (t *tally) count(model string, call spent, failed bool) {
	defer t.tell()
	t.mu.Lock()
	defer t.mu.Unlock()
	use := t.byModel[model]
	if use == nil {
		use = &agent.ModelUse{Model: model}
		t.byModel[model] = use
	}
	u := call.usage
	use.Calls++
	use.TokensIn += u.In + u.CacheWrite // as in the budgets
	use.TokensOut += u.Out
	use.TokensCached += u.Cached
	use.CostMicros += call.cost
	if failed {
		use.Failed++
	}
	if call.over {
		use.Over++
	}
}

func (t *tally) tell() {
	select {
	case t.changed <- struct{}{}:
	default: // nobody has looked since the last change
	}
}

// total returns what was used, sorted by model.
func (t *tally) total() []agent.ModelUse {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []agent.ModelUse
	for _, name := range slices.Sorted(maps.Keys(t.byModel)) {
		all = append(all, *t.byModel[name])
	}
	return all
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
	return s.tally.total, s.tally.changed
}

// spent returns what the run's calls have used, for its record. Calls that are under way
// come to their end first.
func (s *served) spent() []agent.ModelUse {
	for deadline := time.Now().Add(settleTime); s.busy() && time.Now().Before(deadline); time.Sleep(settlePoll) {
	}
	return s.tally.total()
}
