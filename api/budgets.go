package api

import (
	"strings"
	"time"

	"clove.run/clove/agent"
)

// Budget is one dimension of one account that a run spends from.
type Budget struct {
	Account   string    `json:"account" col:"ACCOUNT"` // whose: UID, UID/ns:PATH, UID/name:NAME, UID/provider:NAME or UID/run:ID
	Dimension string    `json:"dimension" col:"DIMENSION,dimension"`
	Granted   *int64    `json:"granted,omitempty" col:"LIMIT,amount of Dimension"` // absent: used is counted, and nothing limits it
	Reserved  int64     `json:"reserved" col:"RESERVED,amount of Dimension"`
	Used      int64     `json:"used" col:"USED,amount of Dimension"`
	Peak      int64     `json:"peak" col:"PEAK,amount of Dimension"` // the largest used so far
	WarnAt    *int64    `json:"warn_at,omitempty" col:"WARN AT,amount of Dimension"`
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
	Dimension string `json:"dimension" col:"DIMENSION,dimension"` // "(other)": those of a user who had very many on that day
	Used      int64  `json:"used" col:"USED,amount of Dimension"`
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
	Dimension  string   `json:"dimension" col:"DIMENSION,dimension"`
	LastMinute int64    `json:"last_minute" col:"LAST MINUTE,amount of Dimension"` // since cloved began, if that is later
	Used       int64    `json:"used" col:"USED,amount of Dimension"`               // of the run's own budget, in its period
	Granted    *int64   `json:"granted,omitempty" col:"LIMIT,amount of Dimension"` // absent: the run itself has no limit
}
