package handoff

import (
	"cmp"
	"encoding/json"
	"errors"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Bounds of offers.
const (
	offersMost     = 32 // that a run has open, and that a run has made
	offersInAnswer = 8
	grantsMost     = 8
	lasts          = time.Hour // unless the giver says something else
	lastsMost      = 24 * time.Hour
)

// offer is a task that a run may accept, below its receiver.
type offer struct {
	ID          string             `json:"id"`
	To          agent.ID           `json:"to"`
	From        agent.ID           `json:"from"`
	Name        string             `json:"name"`           // of the giver
	Send        string             `json:"send,omitempty"` // the grant that let it send; empty: the receiver is below it
	Task        json.RawMessage    `json:"task"`
	Grants      []api.HandoffGrant `json:"grants,omitempty"`
	Reservation string             `json:"reservation,omitempty"` // the giver's, or once it was handed over the receiver's
	Handed      bool               `json:"handed,omitempty"`
	Given       []api.Grant        `json:"given,omitempty"` // once handed over
	Created     time.Time          `json:"created"`
	Expires     time.Time          `json:"expires"`
}

// byGiver is the index of offers by the run that made them.
const byGiver = "offers-by-giver"

// Offers is the table of open offers.
var Offers = store.Table[offer]{
	Bucket: "offers", Noun: "offer", OfRun: true,
	Key: func(o *offer) string { return store.RunKey(o.To, o.ID) },
	Sound: func(o *offer) error {
		if !o.To.Valid() || !o.From.Valid() || o.ID == "" || len(o.Task) == 0 || o.Expires.IsZero() {
			return errors.New("it has no run, no task or no end")
		}
		return nil
	},
	Indexes: []store.Index[offer]{{Bucket: byGiver, Terms: func(o *offer) []string { return []string{string(o.From)} },
		Bound: store.Bound[offer]{Most: offersMost, Error: tooMany("made")}}},
	Bound: store.Bound[offer]{Most: offersMost, Error: tooMany("to accept")},
}

func tooMany(what string) func(*offer) error {
	return func(*offer) error {
		return api.Failure(api.CodeBusy, "wait until some are accepted or expire", "the run has %d offers %s", offersMost, what)
	}
}

// over reports whether an offer can be accepted no more.
func (o *offer) over(now time.Time) bool { return !now.Before(o.Expires) }

// shown is an offer as its receiver sees it.
func (s *Service) shown(tx *store.KernelTx, o *offer) (a api.Offer, err error) {
	a = api.Offer{ID: o.ID, From: o.From, Name: o.Name, Handed: o.Handed, Created: o.Created, Expires: o.Expires}
	for _, g := range o.Grants {
		a.Grants = append(a.Grants, g.Grant)
	}
	if o.Reservation == "" {
		return a, nil
	}
	holder := o.From
	if o.Handed {
		holder = o.To
	}
	a.Amounts, err = s.Accounts.Reserved(tx, holder, o.Reservation)
	if err != nil && api.ErrorOf(err).Code == api.CodeNotFound {
		err = nil // it was settled meanwhile
	}
	return a, err
}

// Forget removes the offers to a run and of it that were made until a moment; zero: all.
func Forget(tx *store.KernelTx, run agent.ID, until time.Time) error {
	received, err := Offers.Below(tx, store.RunKey(run, ""))
	made, madeErr := Offers.Indexed(tx, byGiver, string(run))
	for _, o := range append(received, made...) {
		if until.IsZero() || !o.Created.After(until) {
			err = cmp.Or(err, Offers.Delete(tx, store.RunKey(o.To, o.ID)))
		}
	}
	return cmp.Or(err, madeErr)
}

// forget removes the offers to one run and of another that have expired.
func forget(c *service.Call, to, from agent.ID) error {
	received, err := Offers.Below(c.Tx, store.RunKey(to, ""))
	made, madeErr := Offers.Indexed(c.Tx, byGiver, string(from))
	for _, o := range append(received, made...) {
		if o.over(c.Now) {
			err = cmp.Or(err, Offers.Delete(c.Tx, store.RunKey(o.To, o.ID)))
		}
	}
	return cmp.Or(err, madeErr)
}
