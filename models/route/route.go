// Package route decides which target of a model serves a call: by order of trial, by weight,
// and by the results of earlier calls. It is pure: times and draws are arguments.
//
// A target that fails several times in a row is left out for a while (a circuit breaker).
// Then one call tries it in each pause, until one succeeds. So a provider that is down costs
// few calls their time, and one that comes back is found without anyone's help.
//
// An agent can provoke failures by what it asks, and must not keep others from a target. So a
// failure is counted in up to three places, and a call keeps away from a target that is left
// out in one of its own:
//
//	everybody's   no connection could be made: no request can be the reason
//	its owner's   any failure, and those in a row are of several runs
//	its run's     any failure
package route

import "time"

const (
	// Failures in a row after which a target is left out.
	Failures = 3
	// Pause is how long it is left out, and how far two trials of it are apart.
	Pause = 15 * time.Second
)

// Target is one way to serve a model.
type Target struct {
	Name     string // the same for the same model at the same provider
	Weight   int    // its share among those of its Fallback; 0: only if the others fail
	Fallback int    // order of trial
}

// Outcome is what became of a call.
type Outcome int

// The outcomes.
const (
	Unknown   Outcome = iota // it says nothing of the target: the client went, or the request was wrong
	Succeeded                // the target answered
	Failed                   // the target was overloaded or broken, or was too slow
	Unreached                // no connection could be made
)

// Caller is whose call it is.
type Caller struct {
	Owner uint32
	Run   string
}

// Health is what is known of targets. The zero value knows nothing, and is ready.
type Health struct{ sick map[failureKey]*state }

// failureKey is where failures of a target are counted.
type failureKey struct {
	name   string
	of     scope
	caller Caller // as much of it as the scope has
}

type scope int

const (
	everybody scope = iota
	owner
	run
)

// places are where a caller's failures at a target are counted.
func places(name string, c Caller) [3]failureKey {
	return [3]failureKey{{name, everybody, Caller{}}, {name, owner, Caller{Owner: c.Owner}}, {name, run, c}}
}

// state is that of a target whose last call failed.
type state struct {
	failures int
	run      string    // that saw the first of them
	several  bool      // another has seen one, too
	until    time.Time // when a call may try it, from Failures on
}

// leftOut reports whether s keeps calls from a target.
func (s *state) leftOut(of scope) bool {
	return s != nil && s.failures >= Failures && (of != owner || s.several)
}

// memory is how long failures count that nothing follows: runs come and go.
const memory = 40 * Pause

// Choose returns the index of the target that serves the next call; draw is from 0 to below 1.
// The targets are in the order of their Fallback, and there is one at least. Where all are
// left out, the first serves it: its error says more than a refusal.
func (h *Health) Choose(targets []Target, by Caller, draw float64, now time.Time) int {
	return max(h.Next(targets, by, draw, now), 0)
}

// Next is Choose for a call that another target has failed: -1 where all are left out.
func (h *Health) Next(targets []Target, by Caller, draw float64, now time.Time) int {
	for from := 0; from < len(targets); {
		to := from
		for to < len(targets) && targets[to].Fallback == targets[from].Fallback {
			to++
		}
		if at := h.among(targets[from:to], by, draw, now); at >= 0 {
			h.try(targets[from+at].Name, by, now)
			return from + at
		}
		from = to
	}
	return -1
}

// among chooses by weight; -1: all are left out.
func (h *Health) among(targets []Target, by Caller, draw float64, now time.Time) int {
	sum, spare := 0, -1
	for i, t := range targets {
		switch {
		case !h.open(t.Name, by, now):
		case t.Weight > 0:
			sum += t.Weight
		case spare < 0:
			spare = i
		}
	}
	left := int(draw * float64(sum))
	for i, t := range targets {
		if t.Weight <= 0 || !h.open(t.Name, by, now) {
			continue
		}
		if left -= t.Weight; left < 0 {
			return i
		}
	}
	return spare
}

// open reports whether a call may be sent to a target.
func (h *Health) open(name string, by Caller, now time.Time) bool {
	for _, p := range places(name, by) {
		if s := h.sick[p]; s.leftOut(p.of) && now.Before(s.until) {
			return false
		}
	}
	return true
}

// try has other calls keep away from a sick target while one tries it. It is not told apart
// from the calls before, so one that is never reported delays the next trial by a pause only.
func (h *Health) try(name string, by Caller, now time.Time) {
	for _, p := range places(name, by) {
		if s := h.sick[p]; s.leftOut(p.of) {
			s.until = now.Add(Pause)
		}
	}
}

// Report notes what became of a call.
func (h *Health) Report(name string, by Caller, o Outcome, now time.Time) {
	for _, p := range places(name, by) {
		switch {
		case o == Succeeded:
			delete(h.sick, p)
		case o == Unreached, o == Failed && p.of != everybody:
			h.failed(p, by.Run, now)
		}
	}
}

// failed counts a failure that a run has seen.
func (h *Health) failed(p failureKey, run string, now time.Time) {
	s := h.sick[p]
	if s == nil || s.old(now) {
		h.forget(now)
		s = &state{run: run}
		h.sick[p] = s
	}
	s.several = s.several || s.run != run
	s.failures = min(s.failures+1, Failures)
	s.until = now.Add(Pause)
}

// forget drops what is too old to count.
func (h *Health) forget(now time.Time) {
	for p, s := range h.sick {
		if s.old(now) {
			delete(h.sick, p)
		}
	}
	if h.sick == nil {
		h.sick = map[failureKey]*state{}
	}
}

func (s *state) old(now time.Time) bool { return now.Sub(s.until) >= memory }
