package store

import (
	"cmp"
	"errors"
	"fmt"

	"clove.run/clove/agent"
	"clove.run/clove/kernel/budget"
)

// maxReservations bounds the open reservations of a run.
const maxReservations = 1024

// Accounts is the table of accounts. An account in which something is reserved may not be deleted.
var Accounts = AccountTable{Table[budget.Account]{
	Bucket: string(bucketAccounts),
	Noun:   "account",
	Key: func(a *budget.Account) string {
		if _, ok := a.Key.Owner(); !ok {
			return ""
		}
		return string(a.Key)
	},
	Fill:  func(a *budget.Account, key string) error { a.Key = budget.Key(key); return nil },
	Sound: soundAccount,
}}

// AccountTable is the type of Accounts.
type AccountTable struct{ Table[budget.Account] }

// soundAccount does not examine an account's lines: Check compares them with the reservations.
func soundAccount(a *budget.Account) error {
	if _, ok := a.Key.Owner(); !ok {
		return errors.New("it has no owner")
	}
	if _, ofRun := a.Key.Run(); a.Short != nil && !ofRun {
		return errors.New("it is no run's, and is stopped by a reservation")
	}
	return nil
}

// Under returns the account of a key, if there is one, and all below it, in the order of their
// keys; all of the file for "".
func (b AccountTable) Under(t *KernelTx, key budget.Key) ([]*budget.Account, error) {
	if key == "" {
		return b.Below(t, "")
	}
	all, err := b.Chain(t, key)
	if err != nil {
		return nil, err
	}
	rest, err := b.Below(t, string(key)+"/")
	return append(all, rest...), err
}

// Chain returns the accounts of keys that exist, in their order.
func (b AccountTable) Chain(t *KernelTx, keys ...budget.Key) (c budget.Chain, err error) {
	for _, key := range keys {
		a, err := b.Get(t, string(key))
		if err != nil {
			return nil, err
		}
		if a != nil {
			c = append(c, a)
		}
	}
	return c, nil
}

// PutChain stores all accounts of a chain.
func (b AccountTable) PutChain(t *KernelTx, c budget.Chain) (err error) {
	for _, a := range c {
		err = cmp.Or(err, b.Put(t, a))
	}
	return err
}

// Reservations is the table of open reservations. Put writes nothing where the run has
// maxReservations others: the error is of KindConflict.
var Reservations = Table[budget.Reservation]{
	Bucket: string(bucketReservations),
	Noun:   "reservation",
	Key: func(r *budget.Reservation) string {
		if r.ID == "" || len(r.ID) > maxID {
			return ""
		}
		return RunKey(r.Run, r.ID)
	},
	Sound: soundReservation,
	Bound: Bound[budget.Reservation]{maxReservations, tooManyReservations},
	OfRun: true,
}

func tooManyReservations(r *budget.Reservation) error {
	return &agent.Error{Kind: agent.KindConflict, Step: "budget", Message: fmt.Sprintf("run %s has %d open reservations", r.Run, maxReservations), Hint: "settle or release some"}
}

func soundReservation(r *budget.Reservation) error {
	for account, amounts := range r.Held {
		for d, amount := range amounts {
			if amount != r.Amounts[d] {
				return fmt.Errorf("holds %d of %s in %s, and is of %d", amount, d, account, r.Amounts[d])
			}
		}
	}
	return nil
}
