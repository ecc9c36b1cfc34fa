package kernel

import (
	"cmp"
	"context"
	"encoding/json"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

type reviewParams struct {
	Reviews int64 `json:"reviews"`
}

var reviewRow = api.Row[reviewParams, api.Nothing]{Name: "review.do", Access: api.AccessAgent}

// reviews is a service whose calls cost what they say, and use one less.
func reviews() *service.Service {
	stages := service.Stages[reviewParams]{Costs: func(p reviewParams) (budget.Amounts, error) { return budget.Amounts{"reviews": p.Reviews}, nil }}
	return service.New("review").On(service.Write(reviewRow, stages, func(_ *service.Call, p reviewParams) (none api.Nothing, out service.Outcome, err error) {
		out.Used = budget.Amounts{"reviews": p.Reviews - 1}
		return none, out, nil
	}))
}

// The declared amounts of a call are reserved in the run's budget, and the used ones are paid. A
// call that does not fit is refused, and costs nothing.
func TestACallCosts(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=10"}, AtEnd: "refuse"})
	must(t, r.Kernel.Close())
	r.config.Services = []*service.Service{reviews()}
	r.serve(r.config)
	r.attach(false)
	_, err := r.asAgent(reviewRow.Name, reviewParams{8})
	must(t, err)
	_, err = r.asAgent(reviewRow.Name, reviewParams{4})
	wantCode(t, err, api.CodeBudget)
	if l := r.line("reviews"); l.Used != 7 || l.Reserved != 0 {
		t.Errorf("%+v", l)
	}
}

// The reservation of a call that waits for people stays over a restart of cloved while its run
// lives, and is released when the run has ended.
func TestASweepLeavesWhatWaitsForPeople(t *testing.T) {
	t.Parallel()
	for _, lives := range []bool{true, false} {
		r := newRig(t, agent.Kernel{Budgets: []string{"reviews=10"}})
		held := budget.Reservation{ID: string(agent.NewID()), Run: r.run.Spec.ID, Service: "call", Amounts: budget.Amounts{"reviews": 4}}
		must(t, r.file.Update(func(tx *store.KernelTx) error {
			chain, err := r.budgets.Chain(tx, r.run)
			if err == nil {
				err = chain.Reserve(&held, r.engine.Now())
			}
			return cmp.Or(err, store.Reservations.Put(tx, &held), store.Accounts.PutChain(tx, chain))
		}))
		r.close()
		r.open()
		must(t, r.Sweep(func(agent.ID) bool { return true }, func(agent.ID) bool { return lives }, nothing))
		if l := r.line("reviews"); l.Reserved != map[bool]int64{true: 4}[lives] || l.Used != 0 {
			t.Errorf("lives %t: %+v", lives, l)
		}
	}
}

// A user's call about no run has a key, too: its repetition gets the first answer and changes
// nothing, also after a restart. Another call with the key, and another user's, are others.
func TestAKeyOfACallAboutNoRun(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{})
	set := func(uid uint32, limit string) (json.RawMessage, error) {
		p := api.BudgetSetParams{Account: "1000/ns:acme", Limits: []string{limit}, Keyed: api.Keyed{Key: "k"}}
		return r.Call(context.Background(), service.Caller{UID: uid}, service.Request{Method: methods.BudgetSet.Name, Text: encode(p)})
	}
	first, err := set(1000, "reviews=5")
	must(t, err)
	_, err = r.SetBudget(1000, api.BudgetSetParams{Account: "1000/ns:acme", Limits: []string{"reviews=9"}})
	must(t, err)
	r.close()
	r.open()
	again, err := set(1000, "reviews=5")
	if must(t, err); string(again) != string(first) {
		t.Errorf("%s, then %s", first, again)
	}
	list, err := r.ListBudgets(1000, api.BudgetListParams{Account: "1000/ns:acme"})
	if must(t, err); len(list.Budgets) != 1 || *list.Budgets[0].Granted != 9 {
		t.Errorf("%+v", list)
	}
	_, err = set(1000, "reviews=6")
	wantCode(t, err, api.CodeConflict)
	_, err = set(0, "reviews=6")
	must(t, err)
}
