package kernel

import (
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/store"
)

// accountsInAnswer bounds a part of a list of accounts.
const accountsInAnswer = 200

// SetBudget sets limits of an account that is not a run's: of a user, a namespace or a
// name. Root sets those of users; each user those below its own. uid is who asks.
func (k *Kernel) SetBudget(uid uint32, p api.BudgetSetParams) (api.BudgetResult, error) {
	key := budget.Key(p.Account)
	owner, ok := key.Owner()
	if _, run := key.Run(); !ok || run {
		return api.BudgetResult{}, api.Failure(api.CodeParams, "write UID, UID/ns:NAMESPACE or UID/name:NAME", "%.128q is not an account", p.Account)
	}
	if _, provider := key.Provider(); provider {
		return api.BudgetResult{}, api.Failure(api.CodeParams, "write it below budgets of the provider there, and reload clove", "%s has the limits that models.yaml says", key)
	}
	if uid != 0 && (uid != owner || key == budget.OwnerKey(owner)) {
		return api.BudgetResult{}, api.Failure(api.CodeDenied, "root sets the budget of a user, and a user those below it", "user %d may not set the budget of %s", uid, key).By(stageBudget, api.RuleMethods)
	}
	limits, at, err := limitsOf(p)
	if err != nil {
		return api.BudgetResult{}, err
	}
	if err := k.room(); err != nil {
		return api.BudgetResult{}, err
	}
	var answer api.BudgetResult
	err = k.update(api.MethodBudgetSet, func(tx *store.KernelTx) error {
		a, err := tx.Account(key)
		if err != nil {
			return err
		}
		if a == nil {
			a = &budget.Account{Key: key}
		}
		if a.AtEnd = at; at == "" {
			a.AtEnd = budget.End
		}
		for _, l := range limits {
			if line := a.Lines[l.Dimension]; line != nil && !line.Unlimited && !line.MayChange(uid) {
				return api.Failure(api.CodeDenied, "ask whoever set it, or root", "the limit of %s was set by user %d", l.Dimension, line.Setter).By(stageBudget, budgetRule(key, l.Dimension))
			}
			if _, err := a.Set(l, uid, k.now()); err != nil {
				return err
			}
		}
		answer = result(budget.Chain{a}, k.now())
		entry := audit.Entry{Time: k.now(), Kind: audit.KindAdmin, Owner: owner, Principal: audit.PrincipalUser(uid), Method: api.MethodBudgetSet,
			What: string(key) + " " + strings.Join(p.Limits, " "), Verdict: audit.VerdictAllow}
		return firstError(tx.PutAccount(a), record(tx, entry))
	})
	if err != nil {
		return api.BudgetResult{}, err
	}
	k.queue.wake()
	return answer, k.publishBelow("", key)
}

// limitsOf reads the texts of a request.
func limitsOf(p api.BudgetSetParams) (limits []budget.Limit, at budget.AtEnd, err error) {
	if len(p.Limits) == 0 || len(p.Limits) > budget.MaxDimensions {
		return nil, "", api.Failure(api.CodeParams, `say for example "limits":["tokens=1M/month"]`, "%d limits are named", len(p.Limits))
	}
	for _, text := range p.Limits {
		l, err := budget.ParseLimit(text)
		if err != nil {
			return nil, "", err
		}
		limits = append(limits, l)
	}
	if p.AtEnd != "" {
		at, err = budget.ParseAtEnd(p.AtEnd)
	}
	return limits, at, err
}

// publishBelow reports anew to the supervisors of all runs that spend from one of the
// accounts, except to that of one run.
func (k *Kernel) publishBelow(except agent.ID, keys ...budget.Key) error {
	if len(keys) == 0 {
		return nil
	}
	k.mu.Lock()
	var runs []agent.ID
	for id, a := range k.attached {
		below := slices.ContainsFunc(keysOf(a.run), func(key budget.Key) bool { return slices.Contains(keys, key) })
		if below && id != except {
			runs = append(runs, id)
		}
	}
	k.mu.Unlock()
	var failed error
	for _, id := range runs {
		failed = firstError(failed, k.publish(id, nil))
	}
	return failed
}

// ListBudgets returns the lines of an account and of all below it. Root may ask for
// everything, with no account; a user for its own.
func (k *Kernel) ListBudgets(uid uint32, p api.BudgetListParams) (answer api.BudgetListResult, err error) {
	under := budget.Key(p.Account)
	if under == "" && uid != 0 {
		under = budget.OwnerKey(uid)
	}
	owner, ok := under.Owner()
	if under != "" && !ok || uid != 0 && owner != uid {
		return answer, api.Failure(api.CodeNotFound, "write UID, UID/ns:NAMESPACE, UID/name:NAME, UID/provider:NAME or UID/run:ID", "no account %.128q", p.Account)
	}
	answer.Budgets = []api.Budget{}
	err = k.config.Store.Read(func(tx *store.KernelTx) error {
		all, err := tx.Accounts(under)
		if err != nil {
			return err
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
			answer.Budgets = append(answer.Budgets, budgetsOf(a, budget.Chain{a}.Short(k.now()), k.now())...)
		}
		return nil
	})
	return answer, err
}
