package budgets

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"clove.run/clove/api"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// accountsInAnswer bounds a part of a list of accounts.
const accountsInAnswer = 200

// set sets limits of an account that is not a run's, of a user, a namespace or a name, or
// sets back what was used of those that it has. Root sets those of users; each user those below
// its own; only root changes what another user set.
func (b *Budgets) set(c *service.Call, p api.BudgetSetParams) (result api.BudgetResult, out service.Outcome, err error) {
	key := budget.Key(p.Account)
	owner, err := maySet(c.UID, key, p)
	if err != nil {
		return result, out, err
	}
	change, err := changeOf(p)
	if err != nil {
		return result, out, err
	}
	out.Owner = &owner
	a, err := store.Accounts.Get(c.Tx, string(key))
	if err != nil {
		return result, out, err
	}
	if a == nil {
		a = &budget.Account{Key: key}
	}
	if err := change.apply(a, c.UID, c.Now); err != nil {
		return result, out, err
	}
	out.Below = below(key)
	err = store.Accounts.Put(c.Tx, a)
	if err == nil {
		err = b.more(c, a, &out)
	}
	return linesAt(budget.Chain{a}, c.Now), out, err
}

// maySet refuses an account in which a user sets nothing, and returns its owner. Whose the lines
// are is checked with each (accountChange.apply).
func maySet(uid uint32, key budget.Key, p api.BudgetSetParams) (owner uint32, err error) {
	owner, ok := key.Owner()
	_, run := key.Run()
	_, provider := key.Provider()
	switch {
	case !ok || run:
		return 0, api.Failure(api.CodeParams, "write UID, UID/ns:NAMESPACE or UID/name:NAME", "%.128q is not an account", p.Account)
	case provider && len(p.Limits) > 0:
		return 0, api.Failure(api.CodeParams, "write it below budgets of the provider there, and reload clove", "%s has the limits that models.yaml says", key)
	case uid != 0 && (uid != owner || key == budget.OwnerKey(owner) && len(p.Limits) > 0):
		return 0, api.Failure(api.CodeDenied, "root sets the budget of a user, and a user those below it", "user %d may not set the budget of %s", uid, key).By(service.StageBudget, api.RuleMethods)
	}
	return owner, nil
}

// accountChange is what a caller changes in an account.
type accountChange struct {
	limits []budget.Limit
	at     budget.AtEnd // with limits
	reset  []budget.Dimension
}

// changeOf reads the texts of a request.
func changeOf(p api.BudgetSetParams) (change accountChange, err error) {
	if n := len(p.Limits) + len(p.Reset); n == 0 || n > budget.MaxDimensions {
		return change, api.Failure(api.CodeParams, `say for example "limits":["tokens=1M/month"]`, "%d limits are named", n)
	}
	for _, text := range p.Limits {
		l, err := budget.ParseLimit(text)
		if err != nil {
			return change, err
		}
		change.limits = append(change.limits, l)
	}
	for _, name := range p.Reset {
		change.reset = append(change.reset, budget.Dimension(name))
	}
	change.at = budget.End
	if p.AtEnd != "" {
		change.at, err = budget.ParseAtEnd(p.AtEnd)
	}
	if p.AtEnd != "" && len(p.Limits) == 0 {
		err = api.Failure(api.CodeParams, "leave at_end out", "at_end belongs to limits, and none is set")
	}
	return change, err
}

// apply changes an account in a user's name, or returns an error.
func (c accountChange) apply(a *budget.Account, uid uint32, now time.Time) error {
	for _, l := range c.limits {
		if err := mayChange(a, l.Dimension, uid); err != nil {
			return err
		}
	}
	for d := range a.Lines {
		if len(c.limits) == 0 || a.AtEnd == c.at {
			break
		}
		if err := mayChange(a, d, uid); err != nil { // it is the end of that limit too
			return err
		}
	}
	if len(c.limits) > 0 {
		a.AtEnd = c.at
	}
	for _, l := range c.limits {
		if _, err := a.Set(l, uid, now); err != nil {
			return err
		}
	}
	for _, d := range c.reset {
		if err := cmp.Or(mayChange(a, d, uid), a.Reset(d, now)); err != nil {
			return err
		}
	}
	return nil
}

// mayChange refuses a user who did not set a limit, except root.
func mayChange(a *budget.Account, d budget.Dimension, uid uint32) error {
	if l := a.Lines[d]; l != nil && !l.Unlimited && !l.MayChange(uid) {
		return api.Failure(api.CodeDenied, "ask that user, or root", "the limit of %s was set by user %d", d, l.Setter).By(service.StageBudget, rule(a.Key, d))
	}
	return nil
}

// list returns the lines of an account and of all below it. Root may ask for everything, with no
// account; a user for its own.
func list(c *service.Call, p api.BudgetListParams) (answer api.BudgetListResult, out service.Outcome, err error) {
	under := budget.Key(p.Account)
	if under == "" && !c.Root() {
		under = budget.OwnerKey(c.UID)
	}
	owner, ok := under.Owner()
	if under != "" && !ok || !c.Root() && owner != c.UID {
		return answer, out, api.Failure(api.CodeNotFound, "write UID, UID/ns:NAMESPACE, UID/name:NAME, UID/provider:NAME or UID/run:ID", "no account %.128q", p.Account)
	}
	answer.Budgets = []api.Budget{}
	all, err := store.Accounts.Under(c.Tx, under)
	if err != nil {
		return answer, out, err
	}
	at := 0
	if p.After != "" {
		at, _ = slices.BinarySearchFunc(all, p.After, func(a *budget.Account, after string) int { return strings.Compare(string(a.Key), after) })
		if at < len(all) && string(all[at].Key) == p.After {
			at++
		}
	}
	for i, a := range all[at:] {
		if i == accountsInAnswer {
			answer.Next = string(all[at+i-1].Key)
			break
		}
		answer.Budgets = append(answer.Budgets, linesOf(a, a.Key, budget.Chain{a}.Short(c.Now), c.Now)...)
	}
	return answer, out, nil
}
