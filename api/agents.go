package api

import "clove.run/clove/agent"

// MaxAgentLine bounds a line of an agent on its socket, and an answer to it.
const MaxAgentLine = 64 << 10

// AgentResult is what an agent is, has and was refused.
type AgentResult struct {
	ID        agent.ID    `json:"id"`
	Name      string      `json:"name"`
	Owner     uint32      `json:"owner"` // the user
	Namespace string      `json:"namespace"`
	Parent    agent.ID    `json:"parent,omitempty"`
	State     agent.State `json:"state"`
	Grants    []Grant     `json:"grants"` // the first forty; grant.list has all
	Budgets   []Budget    `json:"budgets"`
	Refused   int64       `json:"refused"` // calls that were refused since the run began, or cloved did; the audit log has all
}
