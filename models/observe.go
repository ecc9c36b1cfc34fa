package models

import "time"

// Outcome is what became of a call.
type Outcome string

// The outcomes.
const (
	OutcomeOK         Outcome = "ok"
	OutcomeRefused    Outcome = "refused"    // by clove, before anything was sent
	OutcomeCancelled  Outcome = "cancelled"  // its client has gone
	OutcomeRejected   Outcome = "rejected"   // the provider finds the request wrong
	OutcomeOverloaded Outcome = "overloaded" // the provider wants fewer requests
	OutcomeFailed     Outcome = "failed"     // the provider failed, or was not reached
	OutcomeBroken     Outcome = "broken"     // the answer is not whole
	OutcomeLost       Outcome = "lost"       // clove-upstream ended: what was used is assumed
)

// Outcomes are all of them.
var Outcomes = []Outcome{OutcomeOK, OutcomeRefused, OutcomeCancelled, OutcomeRejected, OutcomeOverloaded, OutcomeFailed, OutcomeBroken, OutcomeLost}

// Call is what is known of a call that has ended: figures and names, and nothing of its
// contents.
type Call struct {
	ID       string // the same in its audit records; empty: nothing was reserved
	Model    string // as models.yaml names it; empty: the agent named none that it may use
	Provider string // as models.yaml names it; empty as Model
	Target   string // the provider's name of the model; empty as Model
	Answered string // the model that the provider says has answered; any text
	Format   Format
	Stream   bool
	Outcome  Outcome
	Reason   string // of a refusal, a link.Reason
	Trace    string // the client's own span as a traceparent, which the agent chose; empty: it named none
	Status   int    // of HTTP; 0: the provider gave no answer
	Usage    Usage
	// Estimated says that a part of Usage is no provider's figure.
	Estimated bool
	Cost      int64         // millionths of a US dollar
	Began     time.Time     // when the agent's request was read
	Wait      time.Duration // for its turn at the provider
	First     time.Duration // from the request to the provider until the first byte of its answer; 0: none came
	Total     time.Duration // the same until the end
}

// Input is what the provider counts as input: what was read from its cache or written to it,
// too.
func (u Usage) Input() int64 { return u.In + u.Cached + u.CacheWrite }

// Operation is what OpenTelemetry calls a request in this format.
func (f Format) Operation() string {
	if f == AnthropicCount {
		return "count_tokens" // no name of the convention's; it allows others
	}
	return "chat"
}
