package store

import (
	"errors"
	"fmt"

	"clove.run/clove/agent"
	"clove.run/clove/kernel/budget"
)

// maxReservations bounds the open reservations of a run.
const maxReservations = 1024

// Sound says nothing of an account's lines: Check compares them with the reservations.
var accounts = Table[budget.Account]{
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
}

func soundAccount(a *budget.Account) error {
	if _, ok := a.Key.Owner(); !ok {
		return errors.New("it is nobody's")
	}
	if _, ofRun := a.Key.Run(); a.Short != nil && !ofRun {
		return errors.New("it is no run's, and is stopped by a reservation")
	}
	return nil
}

// Account returns the account of key, and nil where there is none.
func (t *KernelTx) Account(key budget.Key) (*budget.Account, error) {
	return accounts.Get(t, string(key))
}

// PutAccount stores an account below its Key.
func (t *KernelTx) PutAccount(a *budget.Account) error { return accounts.Put(t, a) }

// DeleteAccount removes an account in which nothing may be reserved.
func (t *KernelTx) DeleteAccount(key budget.Key) error { return accounts.Delete(t, string(key)) }

// Accounts returns the account of under, if there is one, and all below it, in the order
// of their keys; all of the file for "".
func (t *KernelTx) Accounts(under budget.Key) (all []*budget.Account, err error) {
	prefix := ""
	if under != "" {
		a, err := t.Account(under)
		if err != nil {
			return nil, err
		}
		if a != nil {
			all = append(all, a)
		}
		prefix = string(under) + "/"
	}
	rest, err := accounts.Below(t, prefix)
	return append(all, rest...), err
}

// Chain returns the accounts of keys that exist, in their order.
func (t *KernelTx) Chain(keys ...budget.Key) (c budget.Chain, err error) {
	for _, key := range keys {
		a, err := t.Account(key)
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
func (t *KernelTx) PutChain(c budget.Chain) error {
	for _, a := range c {
		if err := t.PutAccount(a); err != nil {
			return err
		}
	}
	return nil
}

var reservations = Table[budget.Reservation]{
	Bucket: string(bucketReservations),
	Noun:   "reservation",
	Key: func(r *budget.Reservation) string {
		if r.ID == "" || len(r.ID) > maxID {
			return ""
		}
		return reservationKey(r.Run, r.ID)
	},
	Sound: soundReservation,
	Bound: Bound[budget.Reservation]{maxReservations, tooManyReservations},
	OfRun: true,
}

func tooManyReservations(r *budget.Reservation) error {
	return &agent.Error{Kind: agent.KindConflict, Step: "budget", Message: fmt.Sprintf("run %s has %d open reservations", r.Run, maxReservations), Hint: "settle or release some"}
}

func reservationKey(run agent.ID, id string) string { return runPrefix(run) + id }

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

// Reservation returns an open reservation, and nil where there is none.
func (t *KernelTx) Reservation(run agent.ID, id string) (*budget.Reservation, error) {
	return reservations.Get(t, reservationKey(run, id))
}

// PutReservation stores an open reservation. It writes nothing where the run has
// maxReservations others: the error is of KindConflict.
func (t *KernelTx) PutReservation(r budget.Reservation) error { return reservations.Put(t, &r) }

// DeleteReservation removes a reservation that was settled or released.
func (t *KernelTx) DeleteReservation(run agent.ID, id string) error {
	return reservations.Delete(t, reservationKey(run, id))
}

// Reservations returns the open reservations of a run; all of the file for "".
func (t *KernelTx) Reservations(run agent.ID) ([]budget.Reservation, error) {
	prefix := ""
	if run != "" {
		prefix = runPrefix(run)
	}
	return values(reservations.Below(t, prefix))
}
