package budgets

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/budget"
)

// The last minute is counted in parts, the newest of which has just begun.
const (
	minuteParts = 6
	minutePart  = time.Minute / minuteParts
)

// lastMinute is what was spent in each part of the last minute.
type lastMinute struct {
	newest int64 // number of the part since 1970
	parts  [minuteParts]int64
}

// roll begins the part that contains now. A clock that is set back changes nothing.
func (m *lastMinute) roll(now time.Time) {
	part := now.UnixNano() / int64(minutePart)
	if part >= m.newest+minuteParts {
		m.parts, m.newest = [minuteParts]int64{}, part
	}
	for m.newest < part {
		m.newest++
		m.parts[m.newest%minuteParts] = 0
	}
}

func (m *lastMinute) add(amount int64, now time.Time) {
	m.roll(now)
	part := &m.parts[m.newest%minuteParts]
	*part = budget.Sum(*part, amount)
}

func (m *lastMinute) sum(now time.Time) (sum int64) {
	m.roll(now)
	for _, amount := range m.parts {
		sum = budget.Sum(sum, amount)
	}
	return sum
}

// spender is a run that has spent something.
type spender struct {
	spender api.Spender // without amounts
	minutes map[budget.Dimension]*lastMinute
}

// rates is what runs spent in the last minute. It is in memory only: a new cloved begins
// with none. The zero value is ready.
type rates struct {
	mu   sync.Mutex // guards the following
	runs map[agent.ID]*spender
}

// add notes what a run has spent.
func (r *rates) add(run agent.Run, now time.Time, used ...budget.Amounts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, amounts := range used {
		for d, amount := range amounts {
			r.of(run, d).add(amount, now)
		}
	}
}

// of returns the entry of a run's dimension. r.mu is held.
func (r *rates) of(run agent.Run, d budget.Dimension) *lastMinute {
	if r.runs == nil {
		r.runs = map[agent.ID]*spender{}
	}
	s := r.runs[run.Spec.ID]
	if s == nil {
		s = &spender{api.Spender{ID: run.Spec.ID, Name: run.Spec.Name, Owner: run.Owner.UID, Namespace: run.Spec.Kernel.Namespace}, map[budget.Dimension]*lastMinute{}}
		r.runs[run.Spec.ID] = s
	}
	if s.minutes[d] == nil {
		s.minutes[d] = &lastMinute{}
	}
	return s.minutes[d]
}

// forget drops a run that has ended.
func (r *rates) forget(run agent.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.runs, run)
}

// spent returns what a run spent in the last minute, without dimensions of which it spent nothing.
func (r *rates) spent(run agent.ID, now time.Time) budget.Amounts {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := budget.Amounts{}
	if s := r.runs[run]; s != nil {
		for d, m := range s.minutes {
			if sum := m.sum(now); sum > 0 {
				all[d] = sum
			}
		}
	}
	return all
}

// top returns the runs that spent most, at most limit of each dimension, and forgets those that
// spent nothing. Only runs that shows approves are returned.
func (r *rates) top(now time.Time, limit int, shows func(owner uint32, d budget.Dimension) bool) []api.Spender {
	r.mu.Lock()
	var all []api.Spender
	for id, s := range r.runs {
		for d, m := range s.minutes {
			entry := s.spender
			entry.Dimension, entry.LastMinute = string(d), m.sum(now)
			switch {
			case entry.LastMinute == 0:
				delete(s.minutes, d)
			case shows(entry.Owner, d):
				all = append(all, entry)
			}
		}
		if len(s.minutes) == 0 {
			delete(r.runs, id)
		}
	}
	r.mu.Unlock()
	slices.SortFunc(all, func(a, b api.Spender) int {
		return cmp.Or(cmp.Compare(a.Dimension, b.Dimension), cmp.Compare(b.LastMinute, a.LastMinute), cmp.Compare(a.ID, b.ID))
	})
	return firstOfEach(all, limit)
}

// firstOfEach keeps at most limit entries of each dimension.
func firstOfEach(all []api.Spender, limit int) []api.Spender {
	kept, of, count := []api.Spender{}, "", 0
	for _, s := range all {
		if s.Dimension != of {
			of, count = s.Dimension, 0
		}
		if count++; count <= limit {
			kept = append(kept, s)
		}
	}
	return kept
}
