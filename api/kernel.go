package api

import (
	"encoding/json"
	"strings"
	"time"

	"clove.run/clove/agent"
)

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
	To      agent.ID  `json:"to,omitempty"` // the run that gets it; empty: the run itself
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

// Budget is one dimension of one account that a run spends from.
type Budget struct {
	Account   string    `json:"account" col:"ACCOUNT"` // whose: UID, UID/ns:PATH, UID/name:NAME, UID/provider:NAME or UID/run:ID
	Dimension string    `json:"dimension" col:"DIMENSION"`
	Granted   *int64    `json:"granted,omitempty" col:"LIMIT"` // absent: used is counted, and nothing limits it
	Reserved  int64     `json:"reserved" col:"RESERVED"`
	Used      int64     `json:"used" col:"USED"`
	Peak      int64     `json:"peak" col:"PEAK"` // the largest used so far
	WarnAt    *int64    `json:"warn_at,omitempty" col:"WARN AT"`
	AtEnd     string    `json:"at_end,omitempty" col:"AT END"` // end, pause or refuse
	Period    string    `json:"period,omitempty" col:"PERIOD"` // hour, day or month, UTC
	Since     time.Time `json:"since,omitzero"`                // when the period began
	Warned    bool      `json:"warned,omitempty" col:"STATE,warned"`
	Spent     bool      `json:"spent,omitempty" col:"STATE,spent"` // more is used than was granted, of an account above what agents charge all of it, or Wanted is set
	Wanted    int64     `json:"wanted,omitempty"`                  // the reservation that stopped the run, because less than it is left
}

// BudgetResult is what a run spends from.
type BudgetResult struct {
	Budgets []Budget `json:"budgets"`
}

// BudgetReserveParams sets amounts aside.
type BudgetReserveParams struct {
	RunParams
	Amounts map[string]int64 `json:"amounts"` // by dimension
	Keyed
}

// BudgetReserveResult names the reservation.
type BudgetReserveResult struct {
	Reservation string `json:"reservation"`
}

// BudgetSettleParams says what was used of a reservation; the rest is free again.
type BudgetSettleParams struct {
	RunParams
	Reservation string           `json:"reservation"`
	Amounts     map[string]int64 `json:"amounts"`
	Keyed
}

// BudgetReleaseParams frees a reservation.
type BudgetReleaseParams struct {
	RunParams
	Reservation string `json:"reservation"`
	Keyed
}

// BudgetChargeParams records what was used without a reservation.
type BudgetChargeParams struct {
	RunParams
	Amounts map[string]int64 `json:"amounts"`
	Keyed
}

// BudgetRaiseParams changes what is granted to a run by the amounts.
type BudgetRaiseParams struct {
	RunParams
	Amounts map[string]int64 `json:"amounts"`
	Keyed
}

// BudgetResetParams sets what is used back to zero.
type BudgetResetParams struct {
	RunParams
	Dimensions []string `json:"dimensions"`
	Keyed
}

// BudgetSetParams sets limits of a user, a namespace or a name, or what was used of them back to
// zero.
type BudgetSetParams struct {
	Account string   `json:"account"`          // UID, UID/ns:NAMESPACE or UID/name:NAME; for reset alone also UID/provider:NAME
	Limits  []string `json:"limits,omitempty"` // DIMENSION=AMOUNT[/PERIOD][,warn=AMOUNT]
	AtEnd   string   `json:"at_end,omitempty"` // with limits: end, pause or refuse; empty: end
	Reset   []string `json:"reset,omitempty"`  // dimensions of which nothing counts as used any more
	Keyed
}

// AuditText is the request as the audit log has it.
func (p BudgetSetParams) AuditText() string {
	parts := append([]string{p.Account}, p.Limits...)
	if len(p.Reset) > 0 {
		parts = append(append(parts, "reset"), p.Reset...)
	}
	return strings.Join(parts, " ")
}

// BudgetListParams chooses accounts.
type BudgetListParams struct {
	Account string `json:"account,omitempty"` // with all below it; empty: the caller's own, of root all
	After   string `json:"after,omitempty"`   // next of the answer before
}

// BudgetListResult is a part of the lines of accounts, in the order of their names.
type BudgetListResult struct {
	Budgets []Budget `json:"budgets"`
	Next    string   `json:"next,omitempty"` // what to ask with in After; empty: these were the last
}

// BudgetReportParams chooses days of UTC, written as 2026-11-23. Empty: the first and the
// last of which there are sums.
type BudgetReportParams struct {
	From  string `json:"from,omitempty"`
	To    string `json:"to,omitempty"`    // included
	After string `json:"after,omitempty"` // next of the answer before
}

// BudgetReportResult is a part of the sums, in the order of days, users and dimensions.
type BudgetReportResult struct {
	Days []DaySum `json:"days"`
	Next string   `json:"next,omitempty"` // what to ask with in After; empty: these were the last
}

// DaySum is what all runs of a user spent of a dimension in one day.
type DaySum struct {
	Day       string `json:"day" col:"DAY"` // of UTC, as 2026-11-23
	Owner     uint32 `json:"owner" col:"OWNER"`
	Dimension string `json:"dimension" col:"DIMENSION"` // "(other)": those of a user who had very many on that day
	Used      int64  `json:"used" col:"USED"`
}

// BudgetTopParams chooses among the runs that spend.
type BudgetTopParams struct {
	Dimension string `json:"dimension,omitempty"` // empty: all
	Limit     int    `json:"limit,omitempty"`     // runs of each dimension, at most 100; 0: 10
}

// BudgetTopResult lists who spends most, by dimension.
type BudgetTopResult struct {
	Spenders []Spender `json:"spenders"`
}

// Spender is a run that spent something of a dimension in the last minute.
type Spender struct {
	ID         agent.ID `json:"id"`
	Name       string   `json:"name" col:"AGENT"`
	Owner      uint32   `json:"owner" col:"OWNER"`
	Namespace  string   `json:"namespace,omitempty" col:"NAMESPACE"`
	Dimension  string   `json:"dimension" col:"DIMENSION"`
	LastMinute int64    `json:"last_minute" col:"LAST MINUTE"` // since cloved began, if that is later
	Used       int64    `json:"used" col:"USED"`               // of the run's own budget, in its period
	Granted    *int64   `json:"granted,omitempty" col:"LIMIT"` // absent: the run itself has no limit
}

// ModelQueueResult has the calls of models that wait for their turn: those that wait longest
// first, at most 64.
type ModelQueueResult struct {
	Calls []WaitingCall `json:"calls"`
}

// WaitingCall is a call of a model that a limit lets wait.
type WaitingCall struct {
	Model      string `json:"model"`
	Limit      string `json:"limit"`                 // whose it is: model or provider, or target where a provider named it in an answer
	Position   int    `json:"position"`              // 1: the next
	WaitedMS   int64  `json:"waited_ms"`             // so far
	ExpectedMS *int64 `json:"expected_ms,omitempty"` // that it still waits, if no other call comes before it; absent: unknown
}

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
	Notices []Notice  `json:"notices,omitempty"` // for the agent, new ones only
}
