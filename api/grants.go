package api

import (
	"time"

	"clove.run/clove/agent"
)

// Grant is one thing that a run may do.
type Grant struct {
	ID       string    `json:"id" col:"ID"`
	Grant    string    `json:"grant" col:"GRANT"` // KIND:PATTERN[:RIGHTS]
	Holder   agent.ID  `json:"holder"`
	Giver    string    `json:"giver" col:"GIVER"`             // uid:NUMBER, or the id of the run that derived it
	Parent   string    `json:"parent,omitempty" col:"PARENT"` // the grant that it was derived from
	Created  time.Time `json:"created"`
	Expires  time.Time `json:"expires,omitzero" col:"EXPIRES,until"`
	UsesLeft *int64    `json:"uses_left,omitempty" col:"USES,any"` // absent: not counted
	Reason   string    `json:"reason,omitempty" col:"REASON,,cut"`
	Digest   string    `json:"digest,omitempty" col:"MANIFEST,,cut"` // of kind spawn: of the manifest that it starts
	// Rule is where a rule of the run's network comes from, such as --allow or its policy. It is no
	// grant: it is changed with run.update, and nothing is derived from it. Empty: it is a grant.
	Rule string `json:"rule,omitempty" col:"REASON,,cut"`
}

// GrantResult is one grant.
type GrantResult struct {
	Grant Grant `json:"grant"`
}

// GrantListParams names the run, and where the last answer ended.
type GrantListParams struct {
	RunParams
	After string `json:"after,omitempty"`
}

// GrantListResult is a part of a run's grants.
type GrantListResult struct {
	Grants []Grant `json:"grants"`
	Next   string  `json:"next,omitempty"` // what to ask with in After; empty: these were the last
}

// GrantGiveParams gives a run a grant.
type GrantGiveParams struct {
	RunParams
	Grant   string    `json:"grant"` // KIND:PATTERN[:RIGHTS]
	Expires time.Time `json:"expires,omitzero"`
	Uses    *int64    `json:"uses,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Keyed
}

// GrantDeriveParams narrows a grant.
type GrantDeriveParams struct {
	RunParams
	From    string    `json:"from"`         // the id of a grant that the run holds
	To      agent.ID  `json:"to,omitempty"` // the run that gets it, one below this run; empty: the run itself
	Grant   string    `json:"grant"`        // KIND:PATTERN[:RIGHTS], covered by From
	Expires time.Time `json:"expires,omitzero"`
	Uses    *int64    `json:"uses,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Keyed
}

// GrantRevokeParams takes a grant back, with everything that was derived from it.
type GrantRevokeParams struct {
	RunParams
	ID string `json:"id"`
	Keyed
}

// GrantRevokeResult lists what is gone.
type GrantRevokeResult struct {
	Revoked []string `json:"revoked"`
}

// GrantCheckParams asks whether a run may do one thing.
type GrantCheckParams struct {
	RunParams
	What string `json:"what"` // KIND:PATTERN[:RIGHTS]
}

// Names is what the call asks about.
func (p GrantCheckParams) Names() []string { return []string{p.What} }

// GrantCheckResult says whether, and why.
type GrantCheckResult struct {
	Allowed bool   `json:"allowed"`
	Grant   string `json:"grant,omitempty"` // the id of the one that allows it
	Reason  string `json:"reason"`
}
