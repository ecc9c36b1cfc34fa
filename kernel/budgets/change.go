package budgets

import (
	"cmp"
	"maps"
	"slices"

	"clove.run/clove/api"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// account is that of the call's run, of which the caller may change the limits of dimensions.
func account(c *service.Call, dimensions []budget.Dimension) (*budget.Account, error) {
	a, err := store.Accounts.Get(c.Tx, string(budget.RunKey(c.Run.Owner.UID, c.Run.Spec.ID)))
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

func (b *Budgets) raise(c *service.Call, p api.BudgetRaiseParams) (result api.BudgetResult, out service.Outcome, err error) {
	more := budget.Amounts{}
	for name, amount := range p.Amounts {
		more[budget.Dimension(name)] = amount
	}
	if err := more.Validate(); err != nil {
		return result, out, err
	}
	out.About = more.Text()
	dimensions := slices.Sorted(maps.Keys(more))
	a, err := account(c, dimensions)
	if err != nil {
		return result, out, err
	}
	for _, d := range dimensions {
		if err := b.add(c, a, d, more[d], &out); err != nil {
			return result, out, err
		}
	}
	return b.changed(c, a, out)
}

func (b *Budgets) reset(c *service.Call, p api.BudgetResetParams) (result api.BudgetResult, out service.Outcome, err error) {
	var dimensions []budget.Dimension
	for _, name := range p.Dimensions {
		dimensions = append(dimensions, budget.Dimension(name))
	}
	a, err := account(c, dimensions)
	if err != nil {
		return result, out, err
	}
	for _, d := range dimensions {
		out.About = cmp.Or(out.About, string(d))
		if err := a.Reset(d, c.Now); err != nil {
			return result, out, err
		}
	}
	return b.changed(c, a, out)
}

// changed stores the account of the call's run.
func (b *Budgets) changed(c *service.Call, a *budget.Account, out service.Outcome) (api.BudgetResult, service.Outcome, error) {
	if err := store.Accounts.Put(c.Tx, a); err != nil {
		return api.BudgetResult{}, out, err
	}
	if err := b.more(c, a, &out); err != nil {
		return api.BudgetResult{}, out, err
	}
	out.Changed, out.Below = append(out.Changed, c.Run.Spec.ID), below(a.Key)
	return lines(c, out)
}
