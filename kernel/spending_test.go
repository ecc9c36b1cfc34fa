package kernel

import (
	"clove.run/clove/kernel/ledger"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/budget"
)

// Each call of a service uses its grant once, until none is left. A call
// that is refused for another reason uses none.
func TestAServiceUsesGrants(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"model_calls=10"}})
	two := int64(2)
	_, err := r.asUser(1000, methods.GrantGive.Name, api.GrantGiveParams{Grant: "model:small", Uses: &two})
	must(t, err)
	spend := func(calls int64) error {
		_, err := r.Ledger.Reserve(r.run, ledger.Spending{Service: "model", Method: "model.call", What: "model:small", Fit: exactly(budget.Amounts{budget.ModelCalls: calls})})
		return err
	}
	wantCode(t, spend(11), api.CodeBudget)
	for range two {
		if ok, err := r.Ledger.Allowed(r.run, "model:small"); !ok || err != nil {
			t.Fatal(ok, err)
		}
		must(t, spend(1))
	}
	wantCode(t, spend(1), api.CodeDenied)
	if ok, err := r.Ledger.Allowed(r.run, "model:small"); ok || err != nil {
		t.Error("a spent grant allows", err)
	}
}

// exactly chooses the same amounts whatever is left.
func exactly(amounts budget.Amounts) func(budget.Left) (budget.Amounts, error) {
	return func(budget.Left) (budget.Amounts, error) { return amounts, nil }
}
