package api

import (
	"strings"

	"clove.run/clove/agent"
)

// StopParams ends a run: TERM, its grace, then KILL.
type StopParams struct {
	RunParams
	// GraceNS is in nanoseconds; absent: the run's own.
	GraceNS *int64 `json:"grace_ns,omitempty"`
}

// RestartParams ends a run and starts it again.
type RestartParams struct {
	StopParams
	// Fresh lets it begin with a new layer: what the agent wrote is lost.
	Fresh bool `json:"fresh,omitempty"`
}

// SignalParams sends the agent a signal of the Linux kernel's, or ends it by policy or for a budget.
type SignalParams struct {
	RunParams
	Signal int `json:"signal"`
	// Policy is clove's own signal, with Signal 0: the run ends with status policy-kill.
	Policy bool `json:"policy,omitempty"`
	// Budget is clove's own signal, too: the run ends with status budget, in place of Policy.
	Budget bool `json:"budget,omitempty"`
	// Reason, of Policy and Budget only, is in the record and in the audit log; absent: who asked.
	Reason string `json:"reason,omitempty"`
}

// Own reports whether it is one of clove's own signals.
func (p SignalParams) Own() bool { return p.Policy || p.Budget }

// AuditText is why the run is to end, of one of clove's own with a sound reason; empty: the audit log has
// the call's digest.
func (p SignalParams) AuditText() string {
	if !p.Own() || agent.ValidateReason(p.Reason) != nil {
		return ""
	}
	name := "signal POLICY: "
	if p.Budget {
		name = "signal BUDGET: "
	}
	return strings.TrimSuffix(name+p.Reason, ": ")
}

// UpdateParams changes limits and rules of a live run: all that is named, or
// nothing.
type UpdateParams struct {
	RunParams
	Update agent.Update `json:"update"`
}
