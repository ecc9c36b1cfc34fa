package control

import (
	"slices"

	"clove.run/clove/agent"
)

// Activity is what a run has under way.
type Activity struct {
	Run     agent.Run
	Flying  int      // calls in flight
	Waiting int      // calls that wait for a provider, or for what others hold of a budget
	Models  []string // that it has called, sorted
}

// Activity returns that of each run that is served, in no order.
func (c *Control) Activity() []Activity {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := []Activity{}
	for _, s := range c.runs {
		a := s.activity()
		for _, k := range c.calls {
			if k.served == s {
				a.Models = append(a.Models, k.target.Name)
			}
		}
		slices.Sort(a.Models)
		a.Models = slices.Compact(a.Models)
		all = append(all, a)
	}
	return all
}

func (s *served) activity() Activity {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := Activity{Run: s.run, Flying: s.flying, Waiting: s.waiting}
	for _, use := range s.tally.total() {
		a.Models = append(a.Models, use.Model)
	}
	return a
}

// wait counts calls that wait.
func (s *served) wait(more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting += more
}
