package api

import "clove.run/clove/agent"

// StartParams asks for a run. The spec is complete: cloved adds no defaults,
// and gives it an id where it has none.
type StartParams struct {
	Spec agent.Spec `json:"spec"`
	// DelayNS is how long it waits first, in nanoseconds.
	DelayNS int64 `json:"delay_ns,omitempty"`
	// Traceparent is the caller's span (W3C trace context), for a cloved that
	// traces. One that is malformed is ignored.
	Traceparent string `json:"traceparent,omitempty"`
	// Size is the window of a foreground run's caller.
	Size *SessionSize `json:"size,omitempty"`
}

// RunParams names one run: an id, the beginning of exactly one, a name of the caller's,
// or UID/NAME.
type RunParams struct {
	Run string `json:"run"`
}

// AboutRun is the run that the parameters name, of each method that is about one.
func (p RunParams) AboutRun() string { return p.Run }

// Keyed are the parameters of a call that changes something: the same key gets the same answer
// again, and the call is made once. Empty: each call is made.
type Keyed struct {
	Key string `json:"key,omitempty"` // the same key gets the same answer again
}

// CallKey is the call's key.
func (k Keyed) CallKey() string { return k.Key }

// Within bounds how long a call waits.
type Within struct {
	WithinMS int64 `json:"within_ms,omitempty"` // then the call is refused: not found, rule within; 0: it waits without end
}

// WaitMost is the bound in milliseconds.
func (w Within) WaitMost() int64 { return w.WithinMS }

// RunResult is a run, and where it waits, why. Values of its environment that look like
// secrets are redacted.
type RunResult struct {
	Run    agent.Run `json:"run"`
	Reason string    `json:"reason,omitempty"`
}

// ListParams chooses runs.
type ListParams struct {
	All   bool   `json:"all,omitempty"`   // also those that have ended
	Limit int    `json:"limit,omitempty"` // at most so many; 0: as many as one answer holds
	Brief bool   `json:"brief,omitempty"` // true: only what a table shows, and of long commands the beginning
	After string `json:"after,omitempty"` // next of the answer before, to go on behind it
}

// ListResult is the runs, newest first, and why those that wait do.
type ListResult struct {
	Runs    []agent.Run         `json:"runs"`
	Reasons map[agent.ID]string `json:"reasons,omitempty"`
	// Next is what to ask with in After; empty: these were the last.
	Next string `json:"next,omitempty"`
}

// WaitResult is how a run ended.
type WaitResult struct {
	Record agent.Record `json:"record"`
}

// RemoveParams names a run to forget.
type RemoveParams struct {
	RunParams
	Force bool `json:"force,omitempty"`
}

// RenameParams gives a run a new name.
type RenameParams struct {
	RunParams
	Name string `json:"name"`
}

// PruneResult lists what was removed.
type PruneResult struct {
	Removed []agent.ID `json:"removed"`
}
