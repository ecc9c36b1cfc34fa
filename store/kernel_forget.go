package store

import (
	"clove.run/clove/agent"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/grant"
)

// Forgotten is what ForgetRun removed, for the audit log and for whoever enforces it.
type Forgotten struct {
	Account  *budget.Account      // nil where the run had none
	Released []budget.Reservation // what was still reserved
	Grants   []grant.Grant        // those that the run held, and all derived from them
}

// ForgetRun removes everything of a run: its account, its reservations, the grants that it
// held, and its rows of all tables that belong to runs. What was reserved is released in all
// accounts; a reservation whose service may have begun is settled first by the caller
// (budget.Chain.Recover).
func (t *KernelTx) ForgetRun(uid uint32, run agent.ID) (f Forgotten, err error) {
	if f.Released, err = t.Reservations(run); err != nil {
		return f, err
	}
	for _, r := range f.Released {
		if err := t.release(r); err != nil {
			return f, err
		}
	}
	key := budget.RunKey(uid, run)
	if f.Account, err = t.Account(key); err != nil {
		return f, err
	}
	held, err := t.GrantsOf(string(run))
	if err != nil {
		return f, err
	}
	for _, g := range held {
		gone, err := t.DeleteGrant(g.ID)
		if err != nil {
			return f, err
		}
		f.Grants = append(f.Grants, gone...)
	}
	err = t.DeleteAccount(key)
	for _, d := range t.tables {
		err = firstError(err, d.forget(t, run))
	}
	return f, err
}

// release gives a reservation back in each account that holds of it.
func (t *KernelTx) release(r budget.Reservation) error {
	c, err := t.Chain(r.Accounts()...)
	if err == nil {
		err = c.Release(r)
	}
	if err == nil {
		err = t.PutChain(c)
	}
	if err != nil {
		return err
	}
	return t.DeleteReservation(r.Run, r.ID)
}
