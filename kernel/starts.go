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
	var c *call
	err = k.update(string(audit.KindStart), func(tx *store.KernelTx) error {
		c = &call{Caller: Caller{Run: run, UID: run.Owner.UID, ID: string(agent.NewID())}, kernel: k, tx: tx, now: k.now()}
		key := budget.RunKey(run.Owner.UID, run.Spec.ID)
		account, err := tx.Account(key)
		if err != nil {
			return err
		}
		if start = 0; begins {
			start = nextStart(account)
		}
		if account != nil {
			return c.again(account, begins)
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
		c.about, c.reason, c.rule = "", "", ""
		return firstError(tx.PutAccount(account), record(tx, c.startEntry()))
	})
	k.queue.wake()
	if err != nil {
		return 0, err
	}
	return start, k.publishBelow(run.Spec.ID, c.ended...)
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
		var all []budget.Effects
		for _, name := range slices.Sorted(maps.Keys(totals)) {
			d := budget.Dimension(name)
			if !d.Metered() {
				return api.Failure(api.CodeParams, "", "%.32s is not counted by the Linux kernel", name)
			}
			effects, err := chain.Meter(budget.Reading{Dimension: d, Start: start, Total: totals[name]}, c.now)
			if err != nil {
				return err
			}
			all = append(all, effects)
		}
		return c.putSpent(chain, all...)
	})
	if err != nil {
		return err
	}
	return k.publishChange(c)
}

// Metered reports whether an account that the run spends from limits what the Linux kernel
// counts: then the run has a part in it also where it shares nothing itself.
func (k *Kernel) Metered(run agent.Run) (metered bool, err error) {
	err = k.config.Store.Read(func(tx *store.KernelTx) error {
		chain, err := chainOf(tx, run)
		for _, b := range result(chain, k.now()).Budgets {
			metered = metered || b.Granted != nil && budget.Dimension(b.Dimension).Metered()
		}
		return err
	})
	return metered, err
}

func (c *call) startEntry() audit.Entry {
	e := c.entry(string(agent.RunStarted), "", "")
	e.Kind = audit.KindStart
	return e
}

// again settles what the agent of an earlier start had reserved, and forgets what it wanted.
func (c *call) again(account *budget.Account, begins bool) error {
	if !begins {
		return nil
	}
	if account.Short != nil {
		account.Short = nil
		if err := c.tx.PutAccount(account); err != nil {
			return err
		}
	}
	ended, err := c.kernel.settleUntil(c.tx, c.Run.Spec.ID, time.Time{})
	if err != nil {
		return err
	}
	c.ended = ended
	return record(c.tx, c.startEntry())
}

// settleUntil settles what was reserved for a run until a moment; zero: all. What its agent
// had reserved counts as used, because nobody knows better any more; what a service had that
// had not begun, or drew ahead and did not use, as not used. It returns the accounts of several runs of which nothing is left
// since.
func (k *Kernel) settleUntil(tx *store.KernelTx, run agent.ID, until time.Time) (ended []budget.Key, err error) {
	now := k.now()
	open, err := tx.Reservations(run)
	if err != nil {
		return nil, err
	}
	for _, r := range open {
		// One that was made in the future is from before the clock was set back. Nobody knows
		// of which start it is, and it must not be forgotten.
		if !until.IsZero() && r.Made.After(until) && !r.Made.After(now) {
			continue
		}
		r.Begun = (r.Begun || r.Service == serviceAgent) && !k.spares.endOne(run, r.ID)
		chain, err := tx.Chain(r.Accounts()...)
		if err != nil {
			return nil, err
		}
		effects, err := chain.Recover(r, now)
		if err != nil {
			return nil, err
		}
		ended = append(ended, endedAbove(effects)...)
		if err := firstError(putSpent(tx, chain, now, effects), tx.DeleteReservation(r.Run, r.ID)); err != nil {
			return nil, err
		}
	}
	return ended, nil
}
