package api

import (
	"encoding/json"
	"time"

	"clove.run/clove/agent"
)

// KernelParams names the run whose agent calls.
type KernelParams struct {
	Run agent.ID `json:"run"`
	// Begins says that the run starts: what its agent had reserved before is settled.
	Begins bool `json:"begins,omitempty"`
}

// StandingNote is how a run stands.
type StandingNote struct {
	ID       any      `json:"id"`
	Standing Standing `json:"standing"`
}

// KernelCallParams is a call of a run's agent.
type KernelCallParams struct {
	Run    agent.ID        `json:"run"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// KernelServeParams names the run whose agent's calls cloved is to answer.
type KernelServeParams struct {
	Run agent.ID `json:"run"`
}

// NoteReady is what cloved says in kernel.serve when it takes the descriptor of the channel.
const NoteReady = "kernel.ready"

// KernelMeterParams is what the Linux kernel has counted of a run since its start.
type KernelMeterParams struct {
	Run    agent.ID         `json:"run"`
	Start  int              `json:"start"`  // which start of the run: totals count from it
	Totals map[string]int64 `json:"totals"` // by dimension
}

// NoteStanding is the notification of kernel.attach.
const NoteStanding = "kernel.standing"

// NetRule is what a net grant allows.
type NetRule struct {
	agent.EgressRule
	// Expires is when the supervisor closes it, also while cloved is away; zero: never.
	Expires time.Time `json:"expires,omitzero"`
}

// Standing is how a run stands after a change of its grants or budgets.
type Standing struct {
	Net     []NetRule `json:"net"`               // of its net grants
	Spent   []Budget  `json:"spent,omitempty"`   // dimensions of which nothing is left, with what happens then
	Metered []string  `json:"metered,omitempty"` // dimensions of which the supervisor reports what the Linux kernel counts
	Start   int       `json:"start,omitempty"`   // the number of the run's start, where it has just begun
	Asking  []string  `json:"asking,omitempty"`  // the ids of questions about calls of its agent that wait for people
	Notices []Notice  `json:"notices,omitempty"` // for the agent, new ones only
}
