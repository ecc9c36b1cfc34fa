package kernel

import (
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api/agents"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/store"
)

// serviceEntry is the audit entry of what a service does with its reservation.
func (c *call) serviceEntry(r budget.Reservation, method string, amounts budget.Amounts) audit.Entry {
	c.about = budgetText(amounts)
	e := c.entry(method, audit.VerdictAllow, digestOf(method, []byte(c.about)))
	e.Kind, e.Principal = audit.KindDecision, audit.PrincipalService(r.Service)
	return e
}

// Recover settles what services had reserved where none works any more, as far as it matches:
// the process that reserved it is gone.
func (k *Kernel) Recover(matches func(budget.Reservation) bool) error {
	defer k.queue.wake()
	return k.update("sweep", func(tx *store.KernelTx) error {
		open, err := tx.Reservations("")
		for _, r := range open {
			if err != nil {
				return err
			}
			if r.Service != serviceAgent && matches(r) {
				err = recoverReservation(tx, r, k.now())
			}
		}
		return err
	})
}

func recoverReservation(tx *store.KernelTx, r budget.Reservation, now time.Time) error {
	chain, err := tx.Chain(r.Accounts()...)
	if err != nil {
		return err
	}
	effects, err := chain.Recover(r, now)
	if err != nil {
		return err
	}
	err = firstError(putSpent(tx, chain, now, effects), tx.DeleteReservation(r.Run, r.ID))
	if err != nil || !r.Begun || len(chain) == 0 {
		return err
	}
	// The entry of a call in a spare was to come with its settlement: this one stands for it.
	owner, _ := chain[0].Key.Owner()
	c := &call{Caller: Caller{Run: agent.Run{Spec: agent.Spec{ID: r.Run}, Owner: agent.Owner{UID: owner}}, ID: r.ID}, now: now}
	return record(tx, c.serviceEntry(r, agents.BudgetSettle.Name, r.Amounts))
}

// within runs decide in a transaction about a run that no caller began, and reports what
// it changed.
func (k *Kernel) within(run agent.Run, decide func(*call) error) error {
	var c *call
	id := string(agent.NewID())
	err := k.update("service", func(tx *store.KernelTx) error {
		c = &call{Caller: Caller{Run: run, ID: id}, kernel: k, tx: tx, now: k.now()}
		return decide(c)
	})
	if err != nil {
		return err
	}
	k.queue.wake()
	c.decided()
	return firstError(k.publishChange(c), c.refusal)
}
