package kernel

import (
	"cmp"
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/store"
)

// An agent charges 800, 150 and 100 of 1000: it is warned once, and the charge that exceeds
// the limit still counts, because it has happened.
func TestChargesWarnOnceAndEndOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"tokens=1000"}})
	standings := r.attach(false)
	<-standings
	for i, amount := range []int64{800, 150, 100} {
		r.charge("tokens", amount)
		l := r.line("tokens")
		if want := []int64{800, 950, 1050}[i]; l.Used != want || l.Peak != want || !l.Warned || l.Spent != (i == 2) {
			t.Errorf("after charge %d: %+v", i, l)
		}
	}
	warned := receive(t, standings)
	var note api.BudgetNote
	if len(warned.Notices) != 1 || warned.Notices[0].Method != api.NoteBudgetWarning || len(warned.Spent) != 0 {
		t.Fatalf("%+v", warned)
	}
	must(t, json.Unmarshal(warned.Notices[0].Params, &note))
	if b := note.Budget; b.Dimension != "tokens" || b.Used != 800 || *b.Granted != 1000 || *b.WarnAt != 800 {
		t.Errorf("%+v", b)
	}
	spent := receive(t, standings)
	if len(spent.Notices) != 0 || len(spent.Spent) != 1 || spent.Spent[0].AtEnd != "end" || spent.Spent[0].Peak != 1050 || *spent.Spent[0].Granted != 1000 {
		t.Errorf("%+v", spent)
	}
	if len(standings) != 0 {
		t.Errorf("the charge between them was reported: %+v", <-standings)
	}
}

func receive(t *testing.T, standings <-chan api.Standing) api.Standing {
	t.Helper()
	select {
	case now := <-standings:
		return now
	default: // Call returns after its report
		t.Fatal("nothing was reported")
		return api.Standing{}
	}
}

// An agent may neither reserve, settle nor charge dimensions that clove meters, also beside an own
// dimension. The control is each dimension that it may.
func TestAgentsDoNotChargeWhatCloveCounts(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=100", "tokens=100", "cpu_ms=1000"}})
	id := r.reserve("reviews", 10)
	for _, d := range []budget.Dimension{budget.TokensIn, budget.TokensOut, budget.TokensCached, budget.CostMicros, budget.ModelCalls, budget.ToolCalls,
		budget.CPU, budget.Wall, budget.WriteBytes, budget.NetBytes, budget.Messages, budget.Children, budget.Tokens, "reviews"} {
		amounts := map[string]int64{string(d): 1, "reviews": 1}
		for method, params := range map[string]any{
			agents.BudgetReserve.Name: api.BudgetReserveParams{Amounts: amounts},
			agents.BudgetSettle.Name:  api.BudgetSettleParams{Reservation: id, Amounts: amounts},
			agents.BudgetCharge.Name:  api.BudgetChargeParams{Amounts: amounts},
		} {
			_, err := r.asAgent(method, params)
			if d.Counted() {
				wantCode(t, err, api.CodeDenied)
			} else if err != nil && api.ErrorOf(err).Code != api.CodeNotFound { // the reservation is settled once
				t.Errorf("%s of %s: %v", method, d, err)
			}
		}
		if d == budget.Children {
			if l := r.line("reviews"); l.Reserved != 10 || l.Used != 0 {
				t.Errorf("%+v", l)
			}
		}
	}
	if l := r.line("cpu_ms"); l.Used != 0 || l.Reserved != 0 {
		t.Errorf("%+v", l)
	}
}

// Nothing of what an agent may say makes its budget larger.
func TestAgentsGetNothingBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=100"}})
	r.charge("reviews", 10)
	id := r.reserve("reviews", 20)
	for method, text := range map[string]string{
		agents.BudgetCharge.Name:  `{"amounts":{"reviews":-1}}`,
		agents.BudgetReserve.Name: `{"amounts":{"reviews":-1}}`,
		agents.BudgetSettle.Name:  `{"reservation":"` + id + `","amounts":{"reviews":-1}}`,
		agents.BudgetRelease.Name: `{"reservation":"` + id + `","amounts":{"reviews":1}}`,
		methods.BudgetRaise.Name:  `{"amounts":{"reviews":1}}`,
		methods.BudgetReset.Name:  `{"dimensions":["reviews"]}`,
	} {
		if _, err := r.asAgent(method, text); err == nil {
			t.Errorf("%s %s is allowed", method, text)
		}
	}
	for _, text := range []string{`{}`, `{"amounts":{}}`, `{"amounts":{"cost":1}}`, `{"amounts":{"Reviews":1}}`, `{"amounts":{"reviews":1.5}}`, `{"amounts":{"reviews":9007199254740992}}`,
		`{"amount":{"reviews":1}}`, `{"amounts":{"unknown":1}}`} {
		if _, err := r.asAgent(agents.BudgetCharge.Name, text); err == nil {
			t.Errorf("%s is allowed", text)
		}
	}
	if l := r.line("reviews"); l.Used != 10 || l.Reserved != 20 || *l.Granted != 100 {
		t.Errorf("%+v", l)
	}
}

// Each reservation is settled or released once, by the service that made it. The control is
// the agent's own beside it.
func TestOnlyWhoReservedSettles(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=100"}})
	own := r.reserve("reviews", 10)
	other := budget.Reservation{ID: "model-1", Run: r.run.Spec.ID, Service: "models", Amounts: budget.Amounts{"reviews": 30}}
	must(t, r.file.Update(func(tx *store.KernelTx) error {
		chain, err := r.budgets.Chain(tx, r.run)
		if err == nil {
			err = chain.Reserve(&other, r.engine.Now())
		}
		return cmp.Or(err, store.Reservations.Put(tx, &other), store.Accounts.PutChain(tx, chain))
	}))
	end := func(id string) (settled, released error) {
		_, settled = r.asAgent(agents.BudgetSettle.Name, api.BudgetSettleParams{Reservation: id, Amounts: map[string]int64{"reviews": 4}})
		_, released = r.asAgent(agents.BudgetRelease.Name, api.BudgetReleaseParams{Reservation: id})
		return settled, released
	}
	for _, id := range []string{"model-1", "", "x/y", string(agent.NewID())} {
		settled, released := end(id)
		wantCode(t, settled, api.CodeNotFound)
		wantCode(t, released, api.CodeNotFound)
	}
	if l := r.line("reviews"); l.Reserved != 40 || l.Used != 0 {
		t.Errorf("%+v", l)
	}
	settled, released := end(own)
	must(t, settled)
	wantCode(t, released, api.CodeNotFound)
	if l := r.line("reviews"); l.Reserved != 30 || l.Used != 4 {
		t.Errorf("%+v", l)
	}
	_, err := r.asAgent(agents.BudgetRelease.Name, api.BudgetReleaseParams{Reservation: r.reserve("reviews", 66)})
	must(t, err)
	if l := r.line("reviews"); l.Reserved != 30 || l.Used != 4 {
		t.Errorf("%+v", l)
	}
}

// A hundred callers reserve at once: exactly as many get theirs as fit, and the error of the
// others says how much is free.
func TestReservationsNeverOvershoot(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=100"}})
	var all sync.WaitGroup
	var got, refused atomic.Int32
	for range 100 {
		all.Go(func() {
			_, err := r.asAgent(agents.BudgetReserve.Name, `{"amounts":{"reviews":3}}`)
			if err == nil {
				got.Add(1)
				return
			}
			wantCode(t, err, api.CodeBudget)
			refused.Add(1)
		})
	}
	all.Wait()
	if l := r.line("reviews"); got.Load() != 33 || refused.Load() != 67 || l.Reserved != 99 {
		t.Errorf("%d got theirs, %d were refused, %+v", got.Load(), refused.Load(), l)
	}
}

// The user who set a limit raises and resets it, and root does. The line itself refuses any other
// user, also where a mistake of a rule elsewhere lets that user call the method.
func TestWhoRaisesALimit(t *testing.T) {
	t.Parallel()
	for uid, may := range map[uint32]bool{1000: true, 0: true, 1001: false} {
		r := newRig(t, agent.Kernel{Budgets: []string{"reviews=100"}})
		r.charge("reviews", 90)
		_, raised := r.asUser(uid, methods.BudgetRaise.Name, `{"amounts":{"reviews":50}}`)
		_, reset := r.asUser(uid, methods.BudgetReset.Name, `{"dimensions":["reviews"]}`)
		l := r.line("reviews")
		if may && (raised != nil || reset != nil || *l.Granted != 150 || l.Used != 0 || l.Peak != 90 || l.Warned) {
			t.Errorf("uid %d: %v, %v, %+v", uid, raised, reset, l)
		}
		if !may {
			wantCode(t, raised, api.CodeDenied)
			wantCode(t, reset, api.CodeDenied)
			if *l.Granted != 100 || l.Used != 90 {
				t.Errorf("uid %d: %+v", uid, l)
			}
		}
	}
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=100"}})
	for _, text := range []string{`{"amounts":{"unknown":1}}`, `{"amounts":{"reviews":1,"unknown":1}}`} {
		_, err := r.asUser(0, methods.BudgetRaise.Name, text)
		wantCode(t, err, api.CodeNotFound)
	}
	_, err := r.asUser(0, methods.BudgetRaise.Name, `{"amounts":{"reviews":-1}}`)
	wantCode(t, err, api.CodeParams)
	if l := r.line("reviews"); *l.Granted != 100 {
		t.Errorf("%+v", l)
	}
}

// A run spends from its own account and those above it that exist, all or none.
func TestARunSpendsFromItsWholeChain(t *testing.T) {
	t.Parallel()
	run := newRun(1000, agent.Kernel{Budgets: []string{"reviews=100"}, Namespace: "acme/research"})
	r := newRigOf(t, run)
	limits := map[budget.Key]int64{budget.NameKey(1000, "worker"): 50, budget.NamespaceKey(1000, "acme/research"): 40, budget.OwnerKey(1000): 30}
	must(t, r.file.Update(func(tx *store.KernelTx) error {
		for key, granted := range limits {
			a := &budget.Account{Key: key}
			_, err := a.Set(budget.Limit{Dimension: "reviews", Granted: granted}, 0, r.engine.Now())
			if err := cmp.Or(err, store.Accounts.Put(tx, a)); err != nil {
				return err
			}
		}
		return nil
	}))
	r.reserve("reviews", 30)
	_, err := r.asAgent(agents.BudgetReserve.Name, `{"amounts":{"reviews":1}}`)
	wantCode(t, err, api.CodeBudget)
	all := answerOf[api.BudgetResult](t)(r.asAgent(agents.BudgetGet.Name, api.Nothing{}))
	if len(all.Budgets) != 4 {
		t.Errorf("%+v", all)
	}
	for _, b := range all.Budgets {
		if b.Reserved != 30 {
			t.Errorf("%+v", b)
		}
	}
}

// agent.get is the agent's own page.
func TestAgentGet(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=100"}, Grants: []string{"tool:fetch"}, Namespace: "acme"})
	for _, call := range []func() (json.RawMessage, error){
		func() (json.RawMessage, error) { return r.asAgent(agents.AgentGet.Name, api.Nothing{}) },
		func() (json.RawMessage, error) {
			return r.asUser(1000, agents.AgentGet.Name, api.RunParams{Run: string(r.run.Spec.ID)})
		},
	} {
		a := answerOf[api.AgentResult](t)(call())
		if a.ID != r.run.Spec.ID || a.Name != "worker" || a.Owner != 1000 || a.Namespace != "acme" || len(a.Grants) != 1 || a.Grants[0].Grant != "tool:fetch" || len(a.Budgets) != 1 {
			t.Errorf("%+v", a)
		}
	}
}
