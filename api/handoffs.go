package api

import (
	"encoding/json"
	"time"

	"clove.run/clove/agent"
)

// HandoffParams give a task to another run.
type HandoffParams struct {
	To          string          `json:"to"`                    // a name or id as of mail.send: a run below this one, or one of the same user and namespace that a grant of kind send covers
	Task        json.RawMessage `json:"task"`                  // a text or any other JSON, at most 48 KiB
	Grants      []HandoffGrant  `json:"grants,omitempty"`      // at most 8
	Reservation string          `json:"reservation,omitempty"` // by budget.reserve; all of it is handed over
	Expires     time.Time       `json:"expires,omitzero"`      // of the offer; absent: in an hour; at most in a day
	Keyed
}

// HandoffGrant is a part of a grant that is handed over, whose rest is lost.
type HandoffGrant struct {
	From    string    `json:"from"`  // the id of a grant that the run holds
	Grant   string    `json:"grant"` // KIND:PATTERN[:RIGHTS], covered by From
	Expires time.Time `json:"expires,omitzero"`
	Uses    *int64    `json:"uses,omitempty"`
}

// HandoffResult names the offer.
type HandoffResult struct {
	Offer  string `json:"offer"`
	Handed bool   `json:"handed"` // what goes with the task has changed hands; false: it does when the other run accepts
}

// WithdrawParams name an offer of the run's own.
type WithdrawParams struct {
	Offer string `json:"offer"`
	Keyed
}

// OfferListParams ask for the offers to a run.
type OfferListParams struct {
	Wait  bool   `json:"wait,omitempty"` // answer when there is one
	After string `json:"after,omitempty"`
}

// OfferListResult is a part of them, in the order of their ids.
type OfferListResult struct {
	Offers []Offer `json:"offers"`
	Next   string  `json:"next,omitempty"` // what to ask with in After; empty: these were the last
}

// Offer is a task that a run may accept.
type Offer struct {
	ID      string           `json:"id"`
	From    agent.ID         `json:"from"` // the run that gives it
	Name    string           `json:"name"` // of that run
	Grants  []string         `json:"grants,omitempty"`
	Amounts map[string]int64 `json:"amounts,omitempty"` // of the reservation, by dimension
	Handed  bool             `json:"handed,omitempty"`  // they are this run's already
	Created time.Time        `json:"created"`
	Expires time.Time        `json:"expires"`
}

// AcceptParams name an offer.
type AcceptParams struct {
	Offer string `json:"offer"`
	Keyed
}

// AcceptResult is the task with what goes with it.
type AcceptResult struct {
	Task        json.RawMessage `json:"task"`
	From        agent.ID        `json:"from"` // the run that gave it
	Grants      []Grant         `json:"grants,omitempty"`
	Reservation string          `json:"reservation,omitempty"` // for budget.settle or budget.release
}

// OfferNote says that there is a task: ask agent.offers, or accept it.
type OfferNote struct {
	Offer string   `json:"offer"`
	From  agent.ID `json:"from"`
	Repeated
}

// AcceptedNote says that another run has accepted a task of this one.
type AcceptedNote struct {
	Offer string   `json:"offer"`
	To    agent.ID `json:"to"`
	Repeated
}
