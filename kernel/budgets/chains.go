package budgets

import (
	"errors"
	"maps"
	"slices"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// keysOf are the accounts that a run spends from, each once: its own first, then those of the runs
// above it, and its owner's.
func keysOf(run agent.Run) (keys []budget.Key) {
	uid := run.Owner.UID
	add := func(key budget.Key) {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	for _, spender := range run.Under() {
		add(budget.RunKey(uid, spender.ID))
		add(budget.NameKey(uid, spender.Name))
		if spender.Namespace != "" {
			add(budget.NamespaceKey(uid, spender.Namespace))
		}
	}
	return append(keys, budget.OwnerKey(uid))
}

// chainOf returns the accounts that a run spends from, as far as there are any. One that has runs
// above it and no account gets an empty one: theirs is not taken for its own.
func chainOf(tx *store.KernelTx, run agent.Run) (budget.Chain, error) {
	chain, err := store.Accounts.Chain(tx, keysOf(run)...)
	own := budget.RunKey(run.Owner.UID, run.Spec.ID)
	if len(run.Above) > 0 && (len(chain) == 0 || chain[0].Key != own) {
		chain = slices.Insert(chain, 0, &budget.Account{Key: own})
	}
	return chain, err
}

// Chain returns the accounts that a run spends from, as far as there are any.
func (b *Budgets) Chain(tx *store.KernelTx, run agent.Run) (budget.Chain, error) {
	return chainOf(tx, run)
}

// Spent refuses a run that does not exist yet, if an account from which it would spend has nothing left of what it
// limits.
func Spent(tx *store.KernelTx, run agent.Run, now time.Time) error {
	chain, err := chainOf(tx, run)
	for _, a := range chain {
		for _, d := range slices.Sorted(maps.Keys(a.Lines)) {
			if l := a.Lines[d].At(now); err == nil && !l.Unlimited && l.Granted > 0 && l.Used >= l.Granted {
				err = api.Failure(api.CodeBudget, "clove budget set or reset gives more", "nothing is left of %s in %s", d, a.Key).By(service.StageBudget, rule(a.Key, d))
			}
		}
	}
	return err
}

// below returns a match of the runs that spend from one of the accounts; nil for none.
func below(keys ...budget.Key) func(agent.Run) bool {
	if len(keys) == 0 {
		return nil
	}
	return func(run agent.Run) bool {
		return slices.ContainsFunc(keysOf(run), func(key budget.Key) bool { return slices.Contains(keys, key) })
	}
}

// Lines are the lines that a run spends from, as callers see them at now.
func Lines(tx *store.KernelTx, run agent.Run, now time.Time) (api.BudgetResult, error) {
	chain, err := chainOf(tx, run)
	return linesAt(chain, now), err
}

// linesAt are the lines of a chain as callers see them at now.
func linesAt(chain budget.Chain, now time.Time) api.BudgetResult {
	all := api.BudgetResult{Budgets: []api.Budget{}}
	short := chain.Short(now)
	for _, a := range chain {
		all.Budgets = append(all.Budgets, linesOf(a, chain[0].Key, short, now)...)
	}
	return all
}

// linesOf are the lines of an account as callers see them at now, for the run whose account is own.
// short is what stops that run; nil: nothing does.
func linesOf(a *budget.Account, own budget.Key, short *budget.Shortage, now time.Time) []api.Budget {
	var all []api.Budget
	for _, d := range slices.Sorted(maps.Keys(a.Lines)) {
		l := a.Lines[d].At(now)
		b := api.Budget{Account: string(a.Key), Dimension: string(d), Reserved: l.Reserved, Used: l.Used, Peak: l.Peak,
			Period: string(l.Period), Since: l.PeriodStart, Warned: l.Warned, Spent: l.Breached || spentAbove(a.Key, own, d, l)}
		if short != nil && short.Account == a.Key && short.Dimension == d {
			b.Spent, b.Wanted = true, short.Wanted
		}
		if !l.Unlimited {
			granted := l.Granted
			b.Granted, b.AtEnd = &granted, string(a.AtEnd.For(d))
			if l.WarnAt > 0 {
				warn := l.WarnAt
				b.WarnAt = &warn
			}
		}
		all = append(all, b)
	}
	return all
}

// spentAbove reports whether an account above the run whose own is own has nothing left of what
// agents charge, which never exceeds its limit.
func spentAbove(key, own budget.Key, d budget.Dimension, l budget.Line) bool {
	return key.Claimed(d, own) && !l.Unlimited && l.Used >= l.Granted
}

// Exceeded is exceeded, for what a part of clove's reserves.
func (b *Budgets) Exceeded(c *service.Call, chain budget.Chain, err error, out *service.Outcome) error {
	return exceeded(c, chain, err, out)
}

// exceeded refuses what does not fit. Where the run is stopped by that, the call succeeds in
// noting it, and is refused all the same (Outcome.Refusal).
func exceeded(c *service.Call, chain budget.Chain, err error, out *service.Outcome) error {
	var over *budget.Exceeded
	if !errors.As(err, &over) {
		return err
	}
	hint := "" // that of the code: clove budget raise takes runs
	if _, own := over.Account.Run(); !own {
		hint = "clove budget set or reset gives more"
	}
	refused := refusal(over, hint)
	if !chain.Stop(over) {
		return refused
	}
	out.Refusal, out.Changed = refused, append(out.Changed, c.Run.Spec.ID)
	if over.AtEnd == budget.Pause {
		note := noteOf(over.Notice)
		note.Budget.Wanted = over.Wanted
		out.Notify(c.Run.Spec.ID, service.Notice{Kind: api.NoteBudgetPause, Key: note.Budget.Account + " " + note.Budget.Dimension, Params: note})
	}
	return store.Accounts.Put(c.Tx, chain[0])
}

// refusal is the typed error of what does not fit.
func refusal(over *budget.Exceeded, hint string) *api.Error {
	return api.Failure(api.CodeBudget, hint, "%v", over).By(service.StageBudget, rule(over.Account, over.Dimension))
}

// rule names one line of an account.
func rule(account budget.Key, d budget.Dimension) string {
	return api.RuleBudget + string(account) + " " + string(d)
}
