package kernel

import (
	"errors"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/budget"
)

// A reservation that is raised holds the new amounts only; one that does not fit stays as it
// was, and the run goes on, whatever its budget says of an end.
func TestAReservationIsRaised(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"model_calls=100"}, AtEnd: "end", Grants: []string{"model:small"}})
	id, err := r.Reserve(r.run, Spending{Service: "model", Method: "model.call", What: "model:small", Amounts: budget.Amounts{budget.ModelCalls: 40}})
	must(t, err)
	free := func(want int64) {
		t.Helper()
		if got, err := r.Free(r.run, budget.ModelCalls); err != nil || got != want {
			t.Errorf("%d are free, not %d (%v)", got, want, err)
		}
	}
	raise := func(service string, amount int64) error {
		return r.Raise(r.run, service, id, budget.Amounts{budget.ModelCalls: amount})
	}
	free(60)
	must(t, raise("model", 70)) // 40 and 70 are more than there is
	free(30)
	var over *budget.Exceeded
	if err := raise("model", 101); !errors.As(err, &over) {
		t.Errorf("%v", err)
	}
	free(30)
	wantCode(t, raise("other", 1), api.CodeNotFound)
	if _, err := r.Settle(r.run, "model", id, budget.Amounts{budget.ModelCalls: 65}); err != nil {
		t.Fatal(err)
	}
	free(35)
	wantCode(t, raise("model", 1), api.CodeNotFound)
	// The control: what Reserve cannot have stops the run.
	_, err = r.Reserve(r.run, Spending{Service: "model", Method: "model.call", What: "model:small", Amounts: budget.Amounts{budget.ModelCalls: 36}})
	wantCode(t, err, api.CodeBudget)
}
