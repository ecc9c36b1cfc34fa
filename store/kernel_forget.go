package store

import (
	"clove.run/clove/agent"
	"clove.run/clove/kernel/budget"
	"cmp"
)

// ForgetRun removes everything of a run: its account, its reservations, the grants that it
// held with all derived from them, and its rows of all tables that belong to runs. Reserved
// amounts are released in all accounts; a reservation whose service may have begun is settled
// first by the caller (budget.Chain.Recover).
func (t *KernelTx) ForgetRun(uid uint32, run agent.ID) error {
	open, err := Reservations.Below(t, RunKey(run, ""))
	for _, r := range open {
		err = cmp.Or(err, t.release(*r))
	}
	if err != nil {
		return err
	}
	held, err := Grants.HeldBy(t, string(run))
	for _, g := range held {
		if _, err := Grants.Delete(t, g.ID); err != nil {
			return err
		}
	}
	err = cmp.Or(err, Accounts.Delete(t, string(budget.RunKey(uid, run))))
	for _, d := range t.tables {
		err = cmp.Or(err, d.forget(t, run))
	}
	return err
}

// release gives a reservation back in each account that holds of it.
func (t *KernelTx) release(r budget.Reservation) error {
	c, err := Accounts.Chain(t, r.Accounts()...)
	if err == nil {
		err = c.Release(r)
	}
	if err == nil {
		err = Accounts.PutChain(t, c)
	}
	return err
}
