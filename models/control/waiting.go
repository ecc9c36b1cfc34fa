package control

import (
	"cmp"
	"slices"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
)

// maxShown bounds the calls in one answer: those that an honest clove-models has in flight.
const maxShown = 64

// Waiting returns a run's calls that wait for their turn, those that wait longest first.
func (c *Control) Waiting(run agent.ID) []api.WaitingCall {
	var all []shown
	now := time.Now()
	for _, t := range c.desk.limits.each() {
		all = append(all, t.waitingOf(run, now)...)
	}
	slices.SortFunc(all, func(a, b shown) int {
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.call.Position, b.call.Position))
	})
	var calls []api.WaitingCall
	for _, w := range all[:min(len(all), maxShown)] {
		calls = append(calls, w.call)
	}
	return calls
}

// shown is a call that waits, and since when: several may wait since the same millisecond.
type shown struct {
	since time.Time
	call  api.WaitingCall
}

func (ts *limiters) each() (all []*limiter) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, t := range ts.all {
		all = append(all, t)
	}
	return all
}

// waitingOf returns the calls of a run that wait here.
func (t *limiter) waitingOf(run agent.ID, now time.Time) (all []shown) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for call, w := range t.waiting {
		if w.run != run {
			continue
		}
		before, wait := t.queue.Expect(call, now, t.service)
		about := api.WaitingCall{Model: w.model, Limit: t.kind, Position: before + 1, WaitedMS: now.Sub(w.since).Milliseconds()}
		if wait >= 0 {
			about.ExpectedMS = new(wait.Milliseconds())
		}
		all = append(all, shown{w.since, about})
	}
	return all
}
