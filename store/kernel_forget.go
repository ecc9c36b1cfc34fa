package store

import (
	"clove.run/clove/agent"
	"clove.run/clove/kernel/budget"
	"cmp"
)

// ForgetRun removes everything of a run: its account, its reservations, the grants that it
// held with all derived from them, and its rows of all tables that belong to runs. Reserved
// amounts are released in all accounts; a reservation whose service may have begun is settled
// first by the caller (budget.Chain.Recover). Runs below it, whose reservations its account holds
// too, go on without that. It returns the runs that held the derived grants.
func (t *KernelTx) ForgetRun(uid uint32, run agent.ID) (holders []agent.ID, err error) {
	open, err := Reservations.Below(t, RunKey(run, ""))
	for _, r := range open {
		err = cmp.Or(err, t.release(*r))
	}
	if err != nil {
		return nil, err
	}
	held, err := Grants.HeldBy(t, string(run))
	for _, g := range held {
		deleted, err := Grants.Delete(t, g.ID)
		if err != nil {
			return nil, err
		}
		for _, g := range deleted {
			holders = append(holders, agent.ID(g.Holder))
		}
	}
	key := budget.RunKey(uid, run)
	err = cmp.Or(err, t.withhold(key), Accounts.Delete(t, string(key)))
	for _, d := range t.tables {
		err = cmp.Or(err, d.forget(t, run))
	}
	return holders, err
}

// withhold takes an account out of the reservations that it holds of other runs.
func (t *KernelTx) withhold(key budget.Key) error {
	open, err := Reservations.Below(t, "")
	for _, r := range open {
		if _, held := r.Held[key]; held && err == nil {
			delete(r.Held, key)
			err = Reservations.Put(t, r)
		}
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
