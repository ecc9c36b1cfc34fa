package kernel

import (
	"clove.run/clove/kernel/ledger"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/budget"
)

// ceilingOf is what user 1000 may spend at a provider.
func ceilingOf(t *testing.T, limits ...string) *ledger.Ceiling {
	t.Helper()
	c := &ledger.Ceiling{Account: budget.ProviderKey(1000, "openai")}
	for _, text := range limits {
		l, err := budget.ParseLimit(text)
		must(t, err)
		c.Limits = append(c.Limits, l)
	}
	return c
}

// spends reserves calls below a ceiling and settles them.
func (r *rig) spends(c *ledger.Ceiling, calls int64) error {
	r.t.Helper()
	amounts := budget.Amounts{budget.ModelCalls: calls}
	id, err := r.Ledger.Reserve(r.run, ledger.Spending{Service: "model", Method: "model.call", What: "model:small", Ceiling: c, Fit: exactly(amounts)})
	if err == nil {
		err = r.Ledger.Settle(r.run, ledger.Settlement{Service: "model", Reservation: id, Used: amounts})
	}
	return err
}

// A user's limit in a configuration holds over all runs of the user and over restarts, and
// no run ends by it. The control is a user who has no limit.
func TestACeilingHoldsOverRunsAndRestarts(t *testing.T) {
	t.Parallel()
	has := agent.Kernel{Grants: []string{"model:small"}, AtEnd: "end"}
	first := newRigOf(t, newRun(1000, has))
	standings := first.attach(false)
	latest(standings)
	ten := ceilingOf(t, "model_calls=10/day,warn=10")
	must(t, first.spends(ten, 6))
	first.close()
	first.open()
	second := first.beside(newRun(1000, has))
	second.attach(true)
	must(t, second.spends(ten, 3))
	wantCode(t, first.spends(ten, 2), api.CodeBudget)
	wantCode(t, second.spends(ten, 2), api.CodeBudget)
	if left, err := second.Ledger.Left(second.run, ten); err != nil || left.Free.Of(budget.ModelCalls) != 1 {
		t.Errorf("%+v, %v", left, err)
	}
	if l := second.line("model_calls"); l.Used != 3 || l.Spent {
		t.Errorf("%+v", l)
	}
	if got := latest(standings); got != "nothing new" {
		t.Error(got)
	}
	must(t, second.spends(nil, 100)) // control
	all, err := first.ListBudgets(1000, api.BudgetListParams{Account: "1000/provider:openai"})
	if err != nil || len(all.Budgets) != 1 || all.Budgets[0].Used != 9 || *all.Budgets[0].Granted != 10 || all.Budgets[0].AtEnd != "refuse" {
		t.Errorf("%+v, %v", all, err)
	}
	first.clock.Add(86400)
	must(t, first.spends(ten, 10))
}

// The limits are those of the configuration, from the next call on; no caller sets them.
func TestACeilingFollowsItsConfiguration(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Grants: []string{"model:small"}})
	must(t, r.spends(ceilingOf(t, "model_calls=10"), 9))
	wantCode(t, r.spends(ceilingOf(t, "model_calls=10"), 9), api.CodeBudget)
	must(t, r.spends(ceilingOf(t, "model_calls=18"), 9))
	must(t, r.spends(ceilingOf(t), 9)) // no limit any more
	must(t, r.spends(ceilingOf(t, "tokens=1"), 9))
	wantCode(t, r.spends(ceilingOf(t, "model_calls=30"), 1), api.CodeBudget)
	for _, uid := range []uint32{0, 1000} {
		_, err := r.SetBudget(uid, api.BudgetSetParams{Account: "1000/provider:openai", Limits: []string{"model_calls=1000"}})
		wantCode(t, err, api.CodeParams)
	}
}

// A run without cloved is refused what would have to outlast it.
func TestARunAloneHasNoCeiling(t *testing.T) {
	t.Parallel()
	own := &Own{}
	_, err := own.Left(agent.Run{}, ceilingOf(t, "model_calls=10"))
	wantCode(t, err, api.CodeUnenforceable)
	_, err = own.Reserve(agent.Run{}, ledger.Spending{Ceiling: ceilingOf(t, "model_calls=10")})
	wantCode(t, err, api.CodeUnenforceable)
}

// The use of a dimension that was not reserved counts in every account that limits
// it, also where nothing was reserved.
func TestWhatWasNotReservedCountsEverywhere(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Grants: []string{"model:small"}})
	r.set(budget.OwnerKey(1000), "refuse", "tokens_cached=100", "model_calls=9")
	cached := ceilingOf(t, "tokens_cached=50")
	id, err := r.Ledger.Reserve(r.run, ledger.Spending{Service: "model", Method: "model.call", What: "model:small", Ceiling: cached, Fit: exactly(budget.Amounts{budget.ModelCalls: 1})})
	must(t, err)
	must(t, r.Ledger.Settle(r.run, ledger.Settlement{Service: "model", Reservation: id, Used: budget.Amounts{budget.ModelCalls: 1, budget.TokensCached: 50}}))
	if l := r.line("tokens_cached"); l.Used != 50 {
		t.Errorf("%+v", l)
	}
	if left, err := r.Ledger.Left(r.run, nil); err != nil || left.Free.Of(budget.TokensCached) != 50 || left.Free.Of(budget.ModelCalls) != 8 {
		t.Errorf("the user has %+v, %v", left, err)
	}
	if left, err := r.Ledger.Left(r.run, cached); err != nil || left.Free.Of(budget.TokensCached) != 0 {
		t.Errorf("the ceiling has %+v, %v", left, err)
	}
}
