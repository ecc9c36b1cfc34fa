package budgets

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Pausing returns the budget that has a run pause, what people are asked about it, and what clove budget raise would be
// given for the same; nil: none has. A yes adds as much as the run's --budget says, of another account as much as it has,
// and in each case what is missing.
func (b *Budgets) Pausing(c *service.Call, run agent.Run) (asked *api.ApprovalBudget, what, rule string, err error) {
	var s api.Standing
	if _, err := Standing(c.Tx, run, c.Now, &s); err != nil {
		return nil, "", "", err
	}
	ends := slices.ContainsFunc(s.Spent, func(l api.Budget) bool { return l.AtEnd == string(budget.End) })
	at := slices.IndexFunc(s.Spent, func(l api.Budget) bool { return l.AtEnd == string(budget.Pause) })
	if ends || at < 0 {
		return nil, "", "", nil
	}
	l := s.Spent[at]
	asked = &api.ApprovalBudget{Account: l.Account, Dimension: l.Dimension, Granted: *l.Granted, Used: l.Used, Wanted: l.Wanted, Since: l.Since, Until: budget.Period(l.Period).End(l.Since)}
	again := *l.Granted
	if l.Account == string(budget.RunKey(run.Owner.UID, run.Spec.ID)) {
		again = firstOf(run, budget.Dimension(l.Dimension), again)
	}
	missing := budget.Sum(l.Used, l.Wanted) - *l.Granted
	asked.More = min(max(again, missing, 1), budget.MaxAmount-*l.Granted)
	if asked.More < max(missing, 1) {
		return nil, "", "", api.Failure(api.CodeParams, "", "%s of %s is as large as a budget can be", l.Dimension, l.Account)
	}
	what, rule = askedText(*asked)
	return asked, what, rule, nil
}

// firstOf is the amount that a run's --budget says of a dimension; granted, where it says none.
func firstOf(run agent.Run, d budget.Dimension, granted int64) int64 {
	for _, text := range run.Spec.Kernel.Budgets {
		if limit, err := budget.ParseLimit(text); err == nil && limit.Dimension == d {
			return limit.Granted
		}
	}
	return granted
}

// Still reports whether a budget has been neither raised nor reset since people were asked, and its period goes on.
func (b *Budgets) Still(tx *store.KernelTx, asked api.ApprovalBudget, now time.Time) (bool, error) {
	a, err := store.Accounts.Get(tx, asked.Account)
	if err != nil || a == nil || a.Lines[budget.Dimension(asked.Dimension)] == nil {
		return false, err
	}
	l := a.Lines[budget.Dimension(asked.Dimension)].At(now)
	return !l.Unlimited && l.Granted == asked.Granted && l.PeriodStart.Equal(asked.Since) && l.Used >= asked.Used, nil
}

// MayAdd refuses a user who may not raise a limit.
func (b *Budgets) MayAdd(tx *store.KernelTx, asked api.ApprovalBudget, uid uint32) error {
	a, err := store.Accounts.Get(tx, asked.Account)
	if err != nil || a == nil {
		return cmp.Or(err, error(api.Failure(api.CodeNotFound, "", "there is no account %.128q", asked.Account)))
	}
	return mayChange(a, budget.Dimension(asked.Dimension), uid)
}

// Add gives more, as people were asked and as clove budget raise does.
func (b *Budgets) Add(c *service.Call, asked api.ApprovalBudget) (out service.Outcome, err error) {
	if err := b.MayAdd(c.Tx, asked, c.UID); err != nil {
		return out, err
	}
	a, err := store.Accounts.Get(c.Tx, asked.Account)
	if err != nil {
		return out, err
	}
	if err := b.add(c, a, budget.Dimension(asked.Dimension), asked.More, &out); err != nil {
		return out, err
	}
	out.Changed, out.Below = append(out.Changed, c.Run.Spec.ID), below(a.Key)
	return out, cmp.Or(store.Accounts.Put(c.Tx, a), b.more(c, a, &out))
}

// add raises the limit of a dimension by an amount.
func (b *Budgets) add(c *service.Call, a *budget.Account, d budget.Dimension, amount int64, out *service.Outcome) error {
	to := amount
	if l := a.Lines[d]; l != nil {
		to += l.Granted
	}
	effects, err := a.Raise(d, to, c.Now)
	if err == nil {
		note(c, effects, out)
	}
	return err
}

// askedText is what people are asked about a budget, and what clove budget raise would be given for the same.
func askedText(asked api.ApprovalBudget) (what, rule string) {
	d := budget.Dimension(asked.Dimension)
	var text strings.Builder
	text.WriteString("spend more: " + d.Words(asked.Used, asked.Granted) + " are spent")
	if _, ofRun := budget.Key(asked.Account).Run(); !ofRun {
		text.WriteString(" in " + asked.Account)
	}
	if asked.Wanted > 0 {
		text.WriteString(", and the next call wants " + d.Show(asked.Wanted))
	}
	more := d.Exact(asked.More)
	text.WriteString("; a yes adds " + more)
	return text.String(), d.Title() + "=" + more
}
