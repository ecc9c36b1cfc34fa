package ledger

import (
	"clove.run/clove/agent"
	"clove.run/clove/api/agents"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Recover settles what services had reserved, as far as it matches: the process that reserved it
// is gone.
func (l *Ledger) Recover(matches func(budget.Reservation) bool) error {
	return l.engine.Update("sweep", func(tx *store.KernelTx) error {
		open, err := store.Reservations.Below(tx, "")
		for _, r := range open {
			if err != nil {
				return err
			}
			if matches(*r) {
				err = l.recover(tx, *r)
			}
		}
		return err
	})
}

// recover settles one reservation. The entry of a call in a spare was to come with its settlement:
// an entry of this one replaces it.
func (l *Ledger) recover(tx *store.KernelTx, r budget.Reservation) error {
	now := l.engine.Now()
	chain, err := l.accounts.Recover(tx, r, now)
	if err != nil || !r.Begun || len(chain) == 0 {
		return err
	}
	owner, _ := chain[0].Key.Owner()
	c := &service.Call{Caller: service.Caller{Run: agent.Run{Spec: agent.Spec{ID: r.Run}, Owner: agent.Owner{UID: owner}}, ID: r.ID}, Tx: tx, Now: now}
	return service.Record(tx, entryOf(c, r, agents.BudgetSettle.Name, r.Amounts))
}
