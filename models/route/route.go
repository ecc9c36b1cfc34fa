// Package route decides which target of a model serves a call: by order of trial, by weight,
// and by what became of the calls before. It is pure: times and draws are arguments.
//
// A target that fails several times in a row is left out for a while (a circuit breaker).
// Then one call tries it in each pause, until one succeeds. So a provider that is down costs
// few calls their time, and one that comes back is found without anyone's help.
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
	Failed                   // the target was overloaded, unreachable or broken
)

// Health is what is known of targets. The zero value knows nothing, and is ready.
type Health struct{ sick map[string]*state }

// state is that of a target whose last call failed.
type state struct {
	failures int
	until    time.Time // when a call may try it, from Failures on
}

// Choose returns the index of the target that serves the next call; draw is from 0 to below 1.
// The targets are in the order of their Fallback, and there is one at least. Where all are
// left out, the first serves it: its error says more than a refusal.
func (h *Health) Choose(targets []Target, draw float64, now time.Time) int {
	return max(h.Next(targets, draw, now), 0)
}

// Next is Choose for a call that another target has failed: -1 where all are left out.
func (h *Health) Next(targets []Target, draw float64, now time.Time) int {
	for from := 0; from < len(targets); {
		to := from
		for to < len(targets) && targets[to].Fallback == targets[from].Fallback {
			to++
		}
		if at := h.among(targets[from:to], draw, now); at >= 0 {
			h.try(targets[from+at].Name, now)
			return from + at
		}
		from = to
	}
	return -1
}

// among chooses by weight; -1: all are left out.
func (h *Health) among(targets []Target, draw float64, now time.Time) int {
	sum, spare := 0, -1
	for i, t := range targets {
		switch {
		case !h.open(t.Name, now):
		case t.Weight > 0:
			sum += t.Weight
		case spare < 0:
			spare = i
		}
	}
	left := int(draw * float64(sum))
	for i, t := range targets {
		if t.Weight <= 0 || !h.open(t.Name, now) {
			continue
		}
		if left -= t.Weight; left < 0 {
			return i
		}
	}
	return spare
}

// open reports whether a call may be sent to a target.
func (h *Health) open(name string, now time.Time) bool {
	s := h.sick[name]
	return s == nil || s.failures < Failures || !now.Before(s.until)
}

// try has other calls keep away from a sick target while one tries it. It is not told apart
// from the calls before, so one that is never reported delays the next trial by a pause only.
func (h *Health) try(name string, now time.Time) {
	if s := h.sick[name]; s != nil && s.failures >= Failures {
		s.until = now.Add(Pause)
	}
}

// Report notes what became of a call.
func (h *Health) Report(name string, o Outcome, now time.Time) {
	switch o {
	case Succeeded:
		delete(h.sick, name)
	case Failed:
		if h.sick == nil {
			h.sick = map[string]*state{}
		}
		if h.sick[name] == nil {
			h.sick[name] = &state{}
		}
		s := h.sick[name]
		s.failures = min(s.failures+1, Failures)
		s.until = now.Add(Pause)
	}
}
