package budgets

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Begin makes the account of a run, or for a run that starts again empties what its agent had
// wanted. It returns the number of the start; fresh says that there was no account.
func Begin(c *service.Call, starts bool) (start int, fresh bool, err error) {
	key := budget.RunKey(c.Run.Owner.UID, c.Run.Spec.ID)
	a, err := store.Accounts.Get(c.Tx, string(key))
	if err != nil {
		return 0, false, err
	}
	if starts {
		start = nextStart(a)
	}
	if a != nil {
		if starts && a.Short != nil {
			a.Short = nil
			err = store.Accounts.Put(c.Tx, a)
		}
		return start, false, err
	}
	a = &budget.Account{Key: key, AtEnd: budget.AtEnd(c.Run.Spec.Kernel.AtEnd)}
	for _, text := range c.Run.Spec.Kernel.Budgets {
		limit, err := budget.ParseLimit(text)
		if err != nil {
			return 0, false, err
		}
		if _, err := a.Set(limit, c.Run.Owner.UID, c.Now); err != nil {
			return 0, false, err
		}
	}
	return start, true, cmp.Or(setChildren(a, c.Run, c.Now), store.Accounts.Put(c.Tx, a))
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

// Began reports whether a run has an account.
func Began(tx *store.KernelTx, owner uint32, run agent.ID) (bool, error) {
	a, err := store.Accounts.Get(tx, string(budget.RunKey(owner, run)))
	return a != nil, err
}

// Meter charges what the Linux kernel has counted of a run since a start, by dimension.
func (b *Budgets) Meter(c *service.Call, start int, totals map[string]int64) (out service.Outcome, err error) {
	chain, err := chainOf(c.Tx, c.Run)
	if err != nil {
		return out, err
	}
	var all []budget.Effects
	for _, name := range slices.Sorted(maps.Keys(totals)) {
		d := budget.Dimension(name)
		if !d.Metered() {
			return out, api.Failure(api.CodeParams, "", "%.32s is not counted by the Linux kernel", name)
		}
		effects, err := chain.Meter(budget.Reading{Dimension: d, Start: start, Total: totals[name]}, c.Now)
		if err != nil {
			return out, err
		}
		all = append(all, effects)
	}
	return out, b.Spent(c, chain, &out, all...)
}

// SettleOpen settles the reservations of a run until a moment; zero: all. Those of its agent
// count as used, because their use is not known any more; those of a service that had not
// begun, or that unused says were never used, count as not used.
func SettleOpen(tx *store.KernelTx, run agent.ID, until, now time.Time, unused func(reservation string) bool) (out service.Outcome, err error) {
	open, err := store.Reservations.Below(tx, store.RunKey(run, ""))
	if err != nil {
		return out, err
	}
	for _, r := range open {
		// A reservation dated after now predates a clock change: its start is unknown, and it
		// must not be forgotten.
		if !until.IsZero() && r.Made.After(until) && !r.Made.After(now) {
			continue
		}
		r.Begun = (r.Begun || r.Service == serviceAgent) && !unused(r.ID)
		effects, _, err := settleGone(tx, *r, now)
		if err != nil {
			return out, err
		}
		out.Add(service.Outcome{Below: below(ended(effects)...)})
	}
	return out, nil
}

// Recover is settleGone, for what a part of clove's had reserved.
func (b *Budgets) Recover(tx *store.KernelTx, r budget.Reservation, now time.Time) (budget.Chain, error) {
	_, chain, err := settleGone(tx, r, now)
	return chain, err
}

// settleGone settles a reservation whose service is gone, and removes it. It returns the accounts
// that held it.
func settleGone(tx *store.KernelTx, r budget.Reservation, now time.Time) (budget.Effects, budget.Chain, error) {
	chain, err := store.Accounts.Chain(tx, r.Accounts()...)
	if err != nil {
		return budget.Effects{}, nil, err
	}
	effects, err := chain.Recover(r, now)
	if err != nil {
		return effects, nil, err
	}
	return effects, chain, cmp.Or(putSpent(tx, chain, now, effects), store.Reservations.Delete(tx, store.RunKey(r.Run, r.ID)))
}

// OfCalls reports whether an agent reserved by itself, or a call of its that waits for people: both
// are settled with the run, and stay while it lives.
func OfCalls(r budget.Reservation) bool { return r.Service == serviceAgent || r.Service == serviceCall }

// Standing adds what the accounts of a run say, and returns when a period ends of which nothing is
// left.
func Standing(tx *store.KernelTx, run agent.Run, now time.Time, s *api.Standing) (until time.Time, err error) {
	chain, err := chainOf(tx, run)
	for _, b := range linesAt(chain, now).Budgets {
		if b.Spent && b.Wanted == 0 && budget.Key(b.Account).Claimed(budget.Dimension(b.Dimension), chain[0].Key) {
			b.AtEnd = string(budget.Refuse) // what other runs have claimed refuses calls of this one, and no more
		}
		if b.Spent {
			s.Spent = append(s.Spent, b)
			until = earlier(until, budget.Period(b.Period).End(b.Since))
		}
		if budget.Dimension(b.Dimension).Metered() && b.Granted != nil && !slices.Contains(s.Metered, b.Dimension) {
			s.Metered = append(s.Metered, b.Dimension)
		}
	}
	return until, err
}

// earlier is the earlier of two times, of which zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// SpentBefore are the notices about budgets of which nothing is left when a run starts, and that refuse
// its calls: those that end or pause it say so themselves.
func SpentBefore(s api.Standing) (notices []service.Notice) {
	for _, b := range s.Spent {
		if b.AtEnd == string(budget.Refuse) {
			notices = append(notices, service.Notice{Kind: api.NoteBudgetWarning, Key: b.Account + " " + b.Dimension, Params: api.BudgetNote{Budget: b}})
		}
	}
	return notices
}

// Metered reports whether an account that the run spends from limits what the Linux kernel
// counts: then the run has a part in it also where it shares nothing itself.
func Metered(tx *store.KernelTx, run agent.Run, now time.Time) (metered bool, err error) {
	chain, err := chainOf(tx, run)
	for _, b := range linesAt(chain, now).Budgets {
		metered = metered || b.Granted != nil && budget.Dimension(b.Dimension).Metered()
	}
	return metered, err
}
