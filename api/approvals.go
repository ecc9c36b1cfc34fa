package api

import (
	"time"

	"clove.run/clove/agent"
)

// ApprovalKind is what a question is about.
type ApprovalKind string

// The kinds.
const (
	ApproveNet    ApprovalKind = "net"    // a connection that no rule covers
	ApproveSpawn  ApprovalKind = "spawn"  // a child that no grant covers
	ApproveBudget ApprovalKind = "budget" // more of a budget that has paused the run
	ApproveApply  ApprovalKind = "apply"  // writing an agent's changes back to its workspace on the host
	ApproveSecret ApprovalKind = "secret" // a request that is to carry a secret, which no grant covers
	ApproveTool   ApprovalKind = "tool"   // a call of a tool that may change something
)

// ApprovalState is how far a question is.
type ApprovalState string

// The states. Only what waits can be answered.
const (
	ApprovalWaits   ApprovalState = "waiting"
	ApprovalAllowed ApprovalState = "allowed"
	ApprovalDenied  ApprovalState = "denied"
	ApprovalExpired ApprovalState = "expired" // there was no answer in time, which is a no
	ApprovalGone    ApprovalState = "gone"    // the run has ended, its agent has taken the question back, or the budget got more
)

// Approval is a question to people, and their answers. An answer holds for exactly what is shown: Digest names it.
type Approval struct {
	ID        string           `json:"id" col:"ID"`
	State     ApprovalState    `json:"state" col:"STATE"`
	Kind      ApprovalKind     `json:"kind" col:"KIND"`
	Run       agent.ID         `json:"run"`
	Agent     string           `json:"agent" col:"AGENT,ascii"` // the name of the run
	Owner     uint32           `json:"owner"`                   // of the run
	Namespace string           `json:"namespace,omitempty"`
	What      string           `json:"what" col:"WHAT,ascii"` // in full: the target, or the method with its parameters
	Shown     []string         `json:"shown,omitempty"`       // the parts of it, a line each
	Says      string           `json:"says,omitempty"`        // the agent's own words about it
	Cost      string           `json:"cost,omitempty"`        // what it would cost
	Also      string           `json:"also,omitempty"`        // what else the same yes would allow
	Rule      string           `json:"rule,omitempty"`        // what a yes would allow: a target, or what clove budget raise takes; of a call the rule that would have allowed it
	Budget    *ApprovalBudget  `json:"budget,omitempty"`      // of kind budget
	Changes   *ApprovalChanges `json:"changes,omitempty"`     // of kind apply
	Needed    int              `json:"needed,omitempty"`      // so many users must say yes; absent: one
	Digest    string           `json:"digest"`                // of all of the above but the state
	Asked     time.Time        `json:"asked" col:"AGE,age"`   // when
	Expires   time.Time        `json:"expires"`               // then it is a no
	Answers   []ApprovalAnswer `json:"answers,omitempty"`
	Grant     string           `json:"grant,omitempty"` // the id of the run's grant that a yes about the network has made
	Until     time.Time        `json:"until,omitzero"`  // the answer holds so long; absent: to the end of the run
	Once      bool             `json:"once,omitempty"`  // a yes is for one time
	Used      time.Time        `json:"used,omitzero"`   // when it was
}

// ApprovalBudget is a budget of which nothing is left, when people were asked. Amounts are in the dimension's unit.
type ApprovalBudget struct {
	Account   string    `json:"account"`
	Dimension string    `json:"dimension"`
	Granted   int64     `json:"granted"`
	Used      int64     `json:"used"`
	Wanted    int64     `json:"wanted,omitempty"` // by the call that did not fit; 0: what was used is more than was granted
	More      int64     `json:"more"`             // that a yes adds to what is granted
	Since     time.Time `json:"since,omitzero"`   // when the period began
	Until     time.Time `json:"until,omitzero"`   // when it ends, and with it the question; absent: the budget has no period
}

// ApprovalChanges are the changes that people were asked to have written back. run.diff with the same paths gives them
// with the same digest, unless they are others by now.
type ApprovalChanges struct {
	Paths  agent.RawStrings `json:"paths,omitempty"` // inside; absent: all of the workspace
	Digest string           `json:"digest"`
}

// ApprovalAnswer is the answer of one user.
type ApprovalAnswer struct {
	UID     uint32    `json:"uid"` // the user
	Allow   bool      `json:"allow"`
	Time    time.Time `json:"time"`
	Reason  string    `json:"reason,omitempty"`  // the agent reads it
	Once    bool      `json:"once,omitempty"`    // for one time
	ForMS   int64     `json:"for_ms,omitempty"`  // how long the yes is to hold
	Command bool      `json:"command,omitempty"` // the run's --on-ask gave it, with the proof of its owner's key
}

// ApprovalAskParams asks people for a run's supervisor. The same question is asked once: what it is repeated with gets
// the same approval. A question about a budget has no What and no Rule: it is about the one that has paused the run. One about a
// secret has the use instead.
type ApprovalAskParams struct {
	Run       agent.ID         `json:"run"`
	Kind      ApprovalKind     `json:"kind"`
	What      string           `json:"what,omitempty"`
	Rule      string           `json:"rule,omitempty"`
	Secret    *SecretUseParams `json:"secret,omitempty"`
	ExpiresMS int64            `json:"expires_ms,omitempty"` // 0: an hour, and about a budget a day
}

// ApprovalUseParams names a yes for one time, which the run's supervisor uses up.
type ApprovalUseParams struct {
	Run agent.ID `json:"run"`
	ID  string   `json:"id"`
}

// ApprovalResult is one question.
type ApprovalResult struct {
	Approval Approval `json:"approval"`
}

// ApprovalGetParams names a question by its id, or by as much of its beginning as is unique.
type ApprovalGetParams struct {
	ID       string `json:"id"`
	Answered bool   `json:"answered,omitempty"` // wait until it is not waiting; the id is whole then
	Within
}

// ApprovalListParams chooses questions. Empty fields choose all that the caller may see.
type ApprovalListParams struct {
	State ApprovalState `json:"state,omitempty"`
	Run   string        `json:"run,omitempty"`   // name or id
	After string        `json:"after,omitempty"` // where the last answer ended
}

// ApprovalListResult is a part of the questions, in the order in which they were asked.
type ApprovalListResult struct {
	Approvals []Approval `json:"approvals"`
	Next      string     `json:"next,omitempty"` // what to ask with in After; empty: these were the last
}

// ApprovalRespondParams is an answer to a question of a run.
type ApprovalRespondParams struct {
	RunParams
	ID     string `json:"id"`
	Digest string `json:"digest"` // of what the person has seen: another one is refused
	Allow  bool   `json:"allow"`
	ForMS  int64  `json:"for_ms,omitempty"` // how long the answer holds; 0: to the end of the run
	Once   bool   `json:"once,omitempty"`   // a yes is for one time, and ends with it
	Reason string `json:"reason,omitempty"` // at most 1024 bytes
	// Command says that the run's --on-ask answers, and that its supervisor has checked the proof: for root alone. It is
	// the answer of the run's owner. With Fault the proof is wrong: that is recorded, and refused.
	Command bool   `json:"command,omitempty"`
	Fault   string `json:"fault,omitempty"`
	Keyed
}

// ApprovalCancelParams names a question of the agent's own.
type ApprovalCancelParams struct {
	ID string `json:"id"`
	Keyed
}

// ApprovalOwnParams chooses questions of the agent's own.
type ApprovalOwnParams struct {
	After string `json:"after,omitempty"` // where the last answer ended
}
