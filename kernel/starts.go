package kernel

import (
	"maps"
	"slices"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/store"
)

// begin makes a run's account and its first grants, at its first start. Where the run
// starts it returns the number of the start.
func (k *Kernel) begin(run agent.Run, begins bool) (start int, err error) {
	if err := k.room(); err != nil && begins {
		return 0, err
	}
	err = k.update(string(audit.KindStart), func(tx *store.KernelTx) error {
		c := &call{Caller: Caller{Run: run, UID: run.Owner.UID, ID: string(agent.NewID())}, kernel: k, tx: tx, now: k.now()}
		key := budget.RunKey(run.Owner.UID, run.Spec.ID)
		account, err := tx.Account(key)
		if err != nil {
			return err
		}
		if start = 0; begins {
			start = nextStart(account)
		}
		if account != nil {
			return c.again(begins)
		}
		account = &budget.Account{Key: key, AtEnd: budget.AtEnd(run.Spec.Kernel.AtEnd)}
		for _, text := range run.Spec.Kernel.Budgets {
			limit, err := budget.ParseLimit(text)
			if err != nil {
				return err
			}
			if _, err := account.Set(limit, run.Owner.UID, c.now); err != nil {
				return err
			}
		}
		if err := c.firstGrants(); err != nil {
			return err
		}
		c.about, c.rule = "", ""
		return firstError(tx.PutAccount(account), record(tx, c.startEntry()))
	})
	k.queue.wake()
	return start, err
}

// nextStart is above every start of which something was metered.
func nextStart(a *budget.Account) int {
	next := 1
	if a != nil {
		for _, l := range a.Lines {
			next = max(next, l.Start+1)
		}
	}
	return next
}

// Meter charges what the Linux kernel has counted of a run since a start, by dimension.
func (k *Kernel) Meter(run agent.Run, start int, totals map[string]int64) error {
	var c *call
	err := k.update("meter", func(tx *store.KernelTx) error {
		c = &call{Caller: Caller{Run: run, ID: string(agent.NewID())}, kernel: k, tx: tx, now: k.now()}
		chain, err := chainOf(tx, run)
		if err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(totals)) {
			d := budget.Dimension(name)
			if !d.Metered() {
				return api.Failure(api.CodeParams, "", "%.32s is not counted by the Linux kernel", name)
			}
			effects, err := chain.Meter(budget.Reading{Dimension: d, Start: start, Total: totals[name]}, c.now)
			if err != nil {
				return err
			}
			c.report(effects)
		}
		return tx.PutChain(chain)
	})
	if err == nil {
		c.decided()
	}
	if err == nil && c.changed {
		err = k.publish(run.Spec.ID, c.notices)
	}
	return err
}

func (c *call) startEntry() audit.Entry {
	e := c.entry(string(agent.RunStarted), "", "")
	e.Kind = audit.KindStart
	return e
}

// again settles what the agent of an earlier start had reserved.
func (c *call) again(begins bool) error {
	if !begins {
		return nil
	}
	if err := settleAll(c.tx, c.Run.Spec.ID, c.now); err != nil {
		return err
	}
	return record(c.tx, c.startEntry())
}

// settleAll settles what was reserved for a run: by its agent as if all had been used,
// because nobody knows better any more; by a service that had not begun, as if nothing was.
func settleAll(tx *store.KernelTx, run agent.ID, now time.Time) error {
	return settleUntil(tx, run, time.Time{}, now)
}

// settleUntil is settleAll for what was reserved until a moment; zero: for all.
func settleUntil(tx *store.KernelTx, run agent.ID, until, now time.Time) error {
	open, err := tx.Reservations(run)
	if err != nil {
		return err
	}
	for _, r := range open {
		// One that was made in the future is from before the clock was set back. Nobody knows
		// of which start it is, and it must not be forgotten.
		if !until.IsZero() && r.Made.After(until) && !r.Made.After(now) {
			continue
		}
		r.Begun = r.Begun || r.Service == serviceAgent
		chain, err := tx.Chain(r.Accounts()...)
		if err != nil {
			return err
		}
		if _, err := chain.Recover(r, now); err != nil {
			return err
		}
		if err := firstError(tx.PutChain(chain), tx.DeleteReservation(r.Run, r.ID)); err != nil {
			return err
		}
	}
	return nil
}
