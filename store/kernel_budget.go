package store

import (
	"fmt"

	"clove.run/clove/agent"
	"clove.run/clove/kernel/budget"
)

// maxReservations bounds the open reservations of a run.
const maxReservations = 1024

// Account returns the account of key, and nil where there is none.
func (t *KernelTx) Account(key budget.Key) (*budget.Account, error) {
	a := &budget.Account{Key: key}
	found, err := t.load(bucketAccounts, string(key), a)
	if err != nil || !found {
		return nil, err
	}
	return a, nil
}

// PutAccount stores an account below its Key.
func (t *KernelTx) PutAccount(a *budget.Account) error {
	if _, ok := a.Key.Owner(); !ok {
		return wrongKey("an account", string(a.Key))
	}
	return t.store(bucketAccounts, string(a.Key), a)
}

// DeleteAccount removes an account in which nothing may be reserved.
func (t *KernelTx) DeleteAccount(key budget.Key) error {
	return t.delete(bucketAccounts, []byte(key))
}

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
	rows, err := t.below(bucketAccounts, prefix)
	for _, r := range rows {
		a := &budget.Account{Key: budget.Key(r.key)}
		if err := decodeRow(bucketAccounts, r, a); err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, err
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

// RunChain returns the account of a run, a new one where there is none, and those of the
// keys above it that exist.
func (t *KernelTx) RunChain(run budget.Key, above ...budget.Key) (budget.Chain, error) {
	own, err := t.Account(run)
	if err != nil {
		return nil, err
	}
	if own == nil {
		own = &budget.Account{Key: run}
	}
	rest, err := t.Chain(above...)
	return append(budget.Chain{own}, rest...), err
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

func reservationKey(run agent.ID, id string) string { return string(run) + "/" + id }

// Reservation returns an open reservation, and nil where there is none.
func (t *KernelTx) Reservation(run agent.ID, id string) (*budget.Reservation, error) {
	r := &budget.Reservation{}
	found, err := t.load(bucketReservations, reservationKey(run, id), r)
	if err != nil || !found {
		return nil, err
	}
	return r, nil
}

// PutReservation stores an open reservation. It writes nothing where the run has
// maxReservations others: the error is of KindConflict.
func (t *KernelTx) PutReservation(r budget.Reservation) error {
	key := reservationKey(r.Run, r.ID)
	if !r.Run.Valid() || r.ID == "" || len(r.ID) > maxID {
		return wrongKey("a reservation", key)
	}
	there, err := t.get(bucketReservations, []byte(key))
	if err != nil {
		return err
	}
	if there == nil {
		if err := t.room(r.Run); err != nil {
			return err
		}
	}
	return t.store(bucketReservations, key, r)
}

// room returns an error if the run cannot have another reservation.
func (t *KernelTx) room(run agent.ID) error {
	prefix := []byte(run + "/")
	open, err := t.count(bucketReservations, prefix, maxReservations)
	if err != nil || open < maxReservations {
		return err
	}
	return &agent.Error{Kind: agent.KindConflict, Step: "budget", Message: fmt.Sprintf("run %s has %d open reservations", run, open), Hint: "settle or release some"}
}

// DeleteReservation removes a reservation that was settled or released.
func (t *KernelTx) DeleteReservation(run agent.ID, id string) error {
	return t.delete(bucketReservations, []byte(reservationKey(run, id)))
}

// Reservations returns the open reservations of a run; all of the file for "".
func (t *KernelTx) Reservations(run agent.ID) ([]budget.Reservation, error) {
	prefix := ""
	if run != "" {
		prefix = string(run) + "/"
	}
	rows, err := t.below(bucketReservations, prefix)
	if err != nil {
		return nil, err
	}
	return decodeRows[budget.Reservation](bucketReservations, rows)
}
