package kernel

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/store"
)

// service names who reserves: the agent itself, or a part of clove's.
const serviceAgent = "agent"

// keysOf are the accounts that a run spends from, its own first.
func keysOf(run agent.Run) []budget.Key {
	uid := run.Owner.UID
	keys := []budget.Key{budget.RunKey(uid, run.Spec.ID), budget.NameKey(uid, run.Spec.Name)}
	if namespace := run.Spec.Kernel.Namespace; namespace != "" {
		keys = append(keys, budget.NamespaceKey(uid, namespace))
	}
	return append(keys, budget.OwnerKey(uid))
}

func chainOf(tx *store.KernelTx, run agent.Run) (budget.Chain, error) {
	return tx.Chain(keysOf(run)...)
}

// budgetsOf are the lines of an account as callers see them at now. short is what stops
// the run that they are shown for; nil: nothing does.
func budgetsOf(a *budget.Account, short *budget.Shortage, now time.Time) []api.Budget {
	var all []api.Budget
	for _, d := range slices.Sorted(maps.Keys(a.Lines)) {
		l := a.Lines[d].At(now)
		b := api.Budget{Account: string(a.Key), Dimension: string(d), Reserved: l.Reserved, Used: l.Used, Peak: l.Peak,
			Period: string(l.Period), Since: l.PeriodStart, Warned: l.Warned, Spent: l.Breached || spentAbove(a.Key, d, l)}
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

// spentAbove reports whether an account above the runs has nothing left of what agents charge,
// which never exceeds its limit.
func spentAbove(key budget.Key, d budget.Dimension, l budget.Line) bool {
	return key.Claimed(d) && !l.Unlimited && l.Used >= l.Granted
}

func (c *call) budgetGet(api.RunParams) (any, error) { return c.budgets() }

// budgets is the answer of the methods about budgets.
func (c *call) budgets() (any, error) {
	chain, err := chainOf(c.tx, c.Run)
	if err != nil {
		return nil, err
	}
	return result(chain, c.now), nil
}

func result(chain budget.Chain, now time.Time) api.BudgetResult {
	all := api.BudgetResult{Budgets: []api.Budget{}}
	short := chain.Short(now)
	for _, a := range chain {
		all.Budgets = append(all.Budgets, budgetsOf(a, short, now)...)
	}
	return all
}

// amounts reads what a caller named. What clove counts itself nobody else may name.
func (c *call) amounts(given map[string]int64) (budget.Amounts, error) {
	if len(given) == 0 {
		return nil, api.Failure(api.CodeParams, `say for example "amounts":{"reviews":1}`, "no amount is named")
	}
	amounts := budget.Amounts{}
	for name, amount := range given {
		d := budget.Dimension(name)
		if d.Counted() {
			c.about = budgetText(budget.Amounts{d: amount})
			return nil, api.Failure(api.CodeDenied, "clove counts it; use a dimension of your own", "%.32s cannot be charged from outside of clove", name).By(stageBudget, api.RuleCounted+name)
		}
		amounts[d] = amount
	}
	if err := amounts.Validate(); err != nil {
		return nil, err
	}
	c.about = budgetText(amounts)
	return amounts, nil
}

func (c *call) budgetReserve(p api.BudgetReserveParams) (any, error) {
	amounts, err := c.amounts(p.Amounts)
	if err != nil {
		return nil, err
	}
	chain, err := chainOf(c.tx, c.Run)
	if err != nil {
		return nil, err
	}
	r := budget.Reservation{ID: string(agent.NewID()), Run: c.Run.Spec.ID, Service: serviceAgent, Amounts: amounts}
	if err := chain.Reserve(&r, c.now); err != nil {
		return nil, c.exceeded(chain, err)
	}
	if err := firstError(c.tx.PutReservation(r), c.tx.PutChain(chain)); err != nil {
		return nil, err
	}
	return api.BudgetReserveResult{Reservation: r.ID}, nil
}

// exceeded refuses what does not fit. Where the run is stopped by that, the call succeeds in
// noting it, and is refused all the same.
func (c *call) exceeded(chain budget.Chain, err error) error {
	var over *budget.Exceeded
	if !errors.As(err, &over) {
		return err
	}
	hint := "" // that of the code: clove budget raise takes runs
	if _, own := over.Account.Run(); !own {
		hint = "clove budget set or reset gives more"
	}
	refusal := api.Failure(api.CodeBudget, hint, "%v", over).By(stageBudget, budgetRule(over.Account, over.Dimension))
	if !chain.Stop(over) {
		return refusal
	}
	c.refusal, c.changed = refusal, true
	if over.AtEnd == budget.Pause {
		note := noteOf(over.Notice)
		note.Budget.Wanted = over.Wanted
		c.notices = append(c.notices, notice(api.NoteBudgetPause, note))
	}
	return c.tx.PutAccount(chain[0])
}

// budgetRule names one line of an account.
func budgetRule(account budget.Key, d budget.Dimension) string {
	return api.RuleBudget + string(account) + " " + string(d)
}

// reservation returns an open one that the agent may settle.
func (c *call) reservation(id string) (budget.Reservation, budget.Chain, error) {
	r, err := c.tx.Reservation(c.Run.Spec.ID, id)
	if err != nil {
		return budget.Reservation{}, nil, err
	}
	if r == nil || r.Service != serviceAgent {
		return budget.Reservation{}, nil, api.Failure(api.CodeNotFound, "each is settled or released once", "no reservation %.64q", id)
	}
	chain, err := c.tx.Chain(r.Accounts()...)
	return *r, chain, err
}

func (c *call) budgetSettle(p api.BudgetSettleParams) (any, error) {
	amounts, err := c.amounts(p.Amounts)
	if err != nil {
		return nil, err
	}
	r, chain, err := c.reservation(p.Reservation)
	if err != nil {
		return nil, err
	}
	effects, err := chain.Claim(r, amounts, c.now)
	if err != nil {
		return nil, c.exceeded(chain, err)
	}
	return c.spent(r, chain, effects)
}

func (c *call) budgetRelease(p api.BudgetReleaseParams) (any, error) {
	r, chain, err := c.reservation(p.Reservation)
	if err != nil {
		return nil, err
	}
	if err := chain.Release(r); err != nil {
		return nil, err
	}
	return c.spent(r, chain, budget.Effects{})
}

// spent stores a chain whose reservation has ended.
func (c *call) spent(r budget.Reservation, chain budget.Chain, effects budget.Effects) (any, error) {
	if err := firstError(c.putSpent(chain, effects), c.tx.DeleteReservation(r.Run, r.ID)); err != nil {
		return nil, err
	}
	return result(chain, c.now), nil
}

// putSpent stores a chain with what was spent from it, and notes what that means for the
// run.
func (c *call) putSpent(chain budget.Chain, effects ...budget.Effects) error {
	for _, e := range effects {
		c.report(e)
		c.used = append(c.used, e.Used)
	}
	return putSpent(c.tx, chain, c.now, effects...)
}

// putSpent stores a chain, and adds what was spent from it to the sums of the day.
func putSpent(tx *store.KernelTx, chain budget.Chain, now time.Time, effects ...budget.Effects) error {
	for _, e := range effects {
		if len(e.Used) == 0 {
			continue
		}
		owner, _ := chain[0].Key.Owner()
		if err := tx.CountDay(owner, e.Used, now); err != nil {
			return err
		}
	}
	return tx.PutChain(chain)
}

func (c *call) budgetCharge(p api.BudgetChargeParams) (any, error) {
	amounts, err := c.amounts(p.Amounts)
	if err != nil {
		return nil, err
	}
	chain, err := chainOf(c.tx, c.Run)
	if err != nil {
		return nil, err
	}
	effects, err := chain.Claim(budget.Reservation{}, amounts, c.now)
	if err != nil {
		return nil, c.exceeded(chain, err)
	}
	return result(chain, c.now), c.putSpent(chain, effects)
}

// report notes what a change of the chain means for the run, and which accounts above it
// have nothing left: that concerns all runs below them.
func (c *call) report(e budget.Effects) {
	c.ended = append(c.ended, endedAbove(e)...)
	for _, n := range e.Warned {
		c.notices = append(c.notices, notice(api.NoteBudgetWarning, noteOf(n)))
	}
	for _, n := range e.Ended {
		if n.AtEnd == budget.Pause {
			c.notices = append(c.notices, notice(api.NoteBudgetPause, noteOf(n)))
		}
	}
	c.spendingHappened(e)
	c.changed = c.changed || len(e.Warned) > 0 || len(e.Ended) > 0
}

// endedAbove are the accounts of several runs that exceeded a limit.
func endedAbove(e budget.Effects) (keys []budget.Key) {
	for _, n := range e.Ended {
		if _, ofRun := n.Account.Run(); !ofRun {
			keys = append(keys, n.Account)
		}
	}
	return keys
}

func noteOf(n budget.Notice) api.BudgetNote {
	granted := n.Granted
	b := api.Budget{Account: string(n.Account), Dimension: string(n.Dimension), Granted: &granted, Reserved: n.Reserved, Used: n.Used, Peak: n.Peak,
		Period: string(n.Period), AtEnd: string(n.AtEnd)}
	if n.WarnAt > 0 {
		warn := n.WarnAt
		b.WarnAt = &warn
	}
	return api.BudgetNote{Budget: b}
}

// account is that of the run itself, of which the caller may change the limits of
// dimensions.
func (c *call) account(dimensions []budget.Dimension) (*budget.Account, error) {
	a, err := c.tx.Account(budget.RunKey(c.Run.Owner.UID, c.Run.Spec.ID))
	if err != nil {
		return nil, err
	}
	if a == nil {
		return nil, api.Failure(api.CodeNotFound, "start the run with --budget", "%s has no budget", c.Run.Spec.Name)
	}
	for _, d := range dimensions {
		if err := mayChange(a, d, c.UID); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (c *call) budgetRaise(p api.BudgetRaiseParams) (any, error) {
	amounts := budget.Amounts{}
	for name, amount := range p.Amounts {
		amounts[budget.Dimension(name)] = amount
	}
	if err := amounts.Validate(); err != nil {
		return nil, err
	}
	c.about = budgetText(amounts)
	dimensions := slices.Sorted(maps.Keys(amounts))
	a, err := c.account(dimensions)
	if err != nil {
		return nil, err
	}
	for _, d := range dimensions {
		to := amounts[d]
		if l := a.Lines[d]; l != nil {
			to += l.Granted
		}
		effects, err := a.Raise(d, to, c.now)
		if err != nil {
			return nil, err
		}
		c.report(effects)
	}
	return c.changedAccount(a)
}

func (c *call) budgetReset(p api.BudgetResetParams) (any, error) {
	var dimensions []budget.Dimension
	for _, name := range p.Dimensions {
		dimensions = append(dimensions, budget.Dimension(name))
	}
	a, err := c.account(dimensions)
	if err != nil {
		return nil, err
	}
	for _, d := range dimensions {
		c.about = cmp.Or(c.about, string(d))
		if err := a.Reset(d, c.now); err != nil {
			return nil, err
		}
	}
	return c.changedAccount(a)
}

func (c *call) changedAccount(a *budget.Account) (any, error) {
	if err := c.tx.PutAccount(a); err != nil {
		return nil, err
	}
	c.changed = true
	return c.budgets()
}

// budgetText is how amounts stand in the audit log.
func budgetText(amounts budget.Amounts) string {
	text := ""
	for _, d := range slices.Sorted(maps.Keys(amounts)) {
		text += " " + budget.Limit{Dimension: d, Granted: amounts[d], WarnAt: amounts[d] - amounts[d]/5}.String()
	}
	if text == "" {
		return ""
	}
	return text[1:]
}

func (c *call) agentGet(api.RunParams) (any, error) {
	held, err := effective(c.tx, c.Run.Spec.ID)
	if err != nil {
		return nil, err
	}
	chain, err := chainOf(c.tx, c.Run)
	if err != nil {
		return nil, err
	}
	a := api.AgentResult{ID: c.Run.Spec.ID, Name: c.Run.Spec.Name, Owner: c.Run.Owner.UID, Namespace: c.Run.Spec.Kernel.Namespace,
		Parent: c.Run.Parent, State: c.Run.State, Grants: []api.Grant{}, Budgets: result(chain, c.now).Budgets}
	if at := c.kernel.attachmentOf(c.Run.Spec.ID); at != nil {
		a.Refused = at.refused.Load()
	}
	all, err := c.shownAll(held)
	a.Grants = append(a.Grants, all[:min(len(all), grantsInAnswer)]...)
	return a, err
}
