package kernel

import (
	"clove.run/clove/kernel/ledger"
	"errors"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/budget"
)

// renews pays a call's first part, and reserves its second below a ceiling.
func (r *rig) renews(id string, used int64, c *ledger.Ceiling, next int64) error {
	n := ledger.Renewal{Service: "model", Reservation: id, Ceiling: c, Fit: exactly(budget.Amounts{budget.ModelCalls: next})}
	if used > 0 {
		n.Used = budget.Amounts{budget.ModelCalls: used}
	}
	return r.Ledger.Renew(r.run, n)
}

// A reservation that is renewed holds the new amounts only, beside what was paid; one that does
// not fit stays as it was, and the run goes on, whatever its budget says of an end.
func TestAReservationIsRenewed(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"model_calls=100"}, AtEnd: "end", Grants: []string{"model:small"}})
	id, err := r.asks(40)
	must(t, err)
	must(t, r.renews(id, 0, nil, 70)) // 40 and 70 are more than there is
	r.wantCalls(0, 70, 0)
	must(t, r.renews(id, 10, nil, 90))
	r.wantCalls(10, 90, 0)
	var over *budget.Exceeded
	if err := r.renews(id, 5, nil, 86); !errors.As(err, &over) {
		t.Errorf("%v", err)
	}
	r.wantCalls(10, 90, 0)
	err = r.Ledger.Renew(r.run, ledger.Renewal{Service: "model", Reservation: id, Fit: func(budget.Left) (budget.Amounts, error) { return nil, errTight }})
	if !errors.Is(err, errTight) {
		t.Errorf("%v", err)
	}
	r.wantCalls(10, 90, 0)
	wantCode(t, r.Ledger.Renew(r.run, ledger.Renewal{Service: "other", Reservation: id, Fit: exactly(budget.Amounts{})}), api.CodeNotFound)
	r.pays(id, 55, 0)
	r.wantCalls(65, 0, 0)
	wantCode(t, r.renews(id, 0, nil, 1), api.CodeNotFound)
	// The control: what Reserve cannot have stops the run.
	_, err = r.asks(36)
	wantCode(t, err, api.CodeBudget)
}

// The past use is paid below the first ceiling, and the next amounts are reserved below the
// second.
func TestARenewalMovesToAnotherCeiling(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Grants: []string{"model:small"}})
	first, second := ceilingOf(t, "model_calls=10"), ceilingOf(t, "model_calls=20")
	second.Account = budget.ProviderKey(1000, "other")
	free := func(c *ledger.Ceiling, want int64) {
		t.Helper()
		if left, err := r.Ledger.Left(r.run, c); err != nil || left.Free.Of(budget.ModelCalls) != want {
			t.Errorf("%+v, %v, want %d", left, err, want)
		}
	}
	id, err := r.Ledger.Reserve(r.run, ledger.Spending{Service: "model", Method: "model.call", What: "model:small", Ceiling: first, Fit: exactly(budget.Amounts{budget.ModelCalls: 8})})
	must(t, err)
	free(first, 2)
	free(second, 20)
	if err := r.renews(id, 3, second, 21); err == nil {
		t.Error("more than there is")
	}
	free(first, 2)
	free(second, 20)
	must(t, r.renews(id, 3, second, 20))
	free(first, 7)
	free(second, 0)
	r.pays(id, 4, 0)
	free(first, 7)
	free(second, 16)
	r.wantCalls(7, 0, 0)
}

// A call in a spare is renewed as any other, and spares are no hindrance. The log has the call
// before its payments.
func TestACallInASpareIsRenewed(t *testing.T) {
	t.Parallel()
	r := newSpending(t, "model_calls=1000")
	r.call(4, 8)
	r.call(4, 8)
	id, err := r.asks(4) // in the spare
	must(t, err)
	r.wantCalls(8, 8, 0)
	if err := r.renews(id, 2, nil, 991); err == nil { // 8 are used
		t.Error("more than there is")
	}
	r.wantCalls(8, 8, 0)
	must(t, r.renews(id, 2, nil, 10))
	r.wantCalls(10, 10, 0)
	r.pays(id, 1, 8)
	r.wantCalls(11, 8, 0)
	id, err = r.asks(9)
	must(t, err)
	r.wantCalls(11, 17, 0)
	must(t, r.renews(id, 0, nil, 989)) // without the spare
	r.wantCalls(11, 989, 0)
	r.pays(id, 1, 0)
	var got []string
	for _, e := range r.entries() { // which closes
		if name, found := strings.CutPrefix(e.Method, "model."); found {
			got = append(got, name)
		}
	}
	if got := strings.Join(got, " "); got != "call settle call settle call settle renew settle call settle renew settle" {
		t.Error(got)
	}
}
