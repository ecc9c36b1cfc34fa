package kernel

import (
	"fmt"
	"slices"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/store"
)

// A line of any account is reset by the user who set it and by root, and by no other user. What
// was reset can be spent again, and the audit log has each reset.
func TestWhoResetsALineOfAnAccount(t *testing.T) {
	t.Parallel()
	const mine, roots = "reviews", "pages"
	for _, key := range []budget.Key{budget.NamespaceKey(1000, "acme"), budget.NameKey(1000, "worker"), budget.OwnerKey(1000), budget.ProviderKey(1000, "openai")} {
		r := newRigOf(t, newRun(1000, agent.Kernel{Socket: true, Namespace: "acme"}))
		fill(r, key, map[budget.Dimension]uint32{mine: 1000, roots: 0})
		for _, row := range []struct {
			uid       uint32
			dimension string
			may       bool
		}{{1001, mine, false}, {1001, roots, false}, {1000, roots, false}, {1000, mine, true}, {0, roots, true}} {
			_, err := r.SetBudget(row.uid, api.BudgetSetParams{Account: string(key), Reset: []string{row.dimension}})
			if row.may {
				must(t, err)
			} else {
				wantCode(t, err, api.CodeDenied)
			}
			if used := usedOf(r, key, row.dimension); (used == 0) != row.may {
				t.Errorf("%s of %s by user %d: %d used, %v", row.dimension, key, row.uid, used, err)
			}
		}
		want := []string{fmt.Sprint("uid:1000 ", key, " reset reviews"), fmt.Sprint("uid:0 ", key, " reset pages")}
		var got []string
		for _, e := range r.entries() {
			if e.Method == methods.BudgetSet.Name && e.Kind == audit.KindAdmin && e.Verdict == audit.VerdictAllow {
				got = append(got, e.Principal+" "+e.What)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the log has %q", key, got)
		}
	}
}

// The hint of a refusal names the command that gives more: clove budget raise takes runs only.
func TestTheHintFitsTheAccount(t *testing.T) {
	t.Parallel()
	r := newRigOf(t, newRun(1000, agent.Kernel{Socket: true, Namespace: "acme", Budgets: []string{"pages=5"}}))
	fill(r, budget.NamespaceKey(1000, "acme"), map[budget.Dimension]uint32{"reviews": 1000})
	for _, row := range [][3]string{
		{agents.BudgetCharge.Name, "reviews", "clove budget set or reset gives more"},
		{agents.BudgetReserve.Name, "reviews", "clove budget set or reset gives more"},
		{agents.BudgetReserve.Name, "pages", "clove budget raise gives more"},
	} {
		_, err := r.asAgent(row[0], fmt.Sprintf(`{"amounts":{%q:6}}`, row[1]))
		if e := api.ErrorOf(err); e.Code != api.CodeBudget || e.Data.Hint != row[2] {
			t.Errorf("%s of %s: %+v", row[0], row[1], e)
		}
	}
}

// fill makes an account with lines of 10 that are used up, each set by a user.
func fill(r *rig, key budget.Key, setters map[budget.Dimension]uint32) {
	r.t.Helper()
	must(r.t, r.file.Update(func(tx *store.KernelTx) error {
		a := &budget.Account{Key: key, AtEnd: budget.Refuse}
		for d, uid := range setters {
			_, err := a.Set(budget.Limit{Dimension: d, Granted: 10}, uid, r.engine.Now())
			must(r.t, err)
			_, err = budget.Chain{a}.Charge(budget.Amounts{d: 10}, r.engine.Now())
			must(r.t, err)
		}
		return store.Accounts.Put(tx, a)
	}))
}

func usedOf(r *rig, key budget.Key, dimension string) int64 {
	r.t.Helper()
	all, err := r.ListBudgets(0, api.BudgetListParams{Account: string(key)})
	must(r.t, err)
	for _, b := range all.Budgets {
		if b.Account == string(key) && b.Dimension == dimension {
			return b.Used
		}
	}
	r.t.Fatalf("%s has no %s", key, dimension)
	return 0
}

// A user cannot get round the rule: by a limit of the same dimension, by another end for the
// account, or by a new period. The control is root.
func TestWhatAnotherUserSetStays(t *testing.T) {
	t.Parallel()
	key := budget.NamespaceKey(1000, "acme")
	for name, p := range map[string]api.BudgetSetParams{
		"a limit":       {Limits: []string{"pages=20"}, AtEnd: "refuse"},
		"a period":      {Limits: []string{"pages=10/hour"}, AtEnd: "refuse"},
		"the end":       {Limits: []string{"other=1"}, AtEnd: "pause"},
		"a reset":       {Reset: []string{"pages"}},
		"a reset aside": {Limits: []string{"other=1"}, AtEnd: "refuse", Reset: []string{"pages"}},
	} {
		r := newRig(t, agent.Kernel{Socket: true})
		fill(r, key, map[budget.Dimension]uint32{"pages": 0})
		p.Account = string(key)
		_, err := r.SetBudget(1000, p)
		wantCode(t, err, api.CodeDenied)
		if used := usedOf(r, key, "pages"); used != 10 {
			t.Errorf("%s: %d used", name, used)
		}
		_, err = r.SetBudget(0, p)
		must(t, err)
	}
	r := newRig(t, agent.Kernel{Socket: true})
	for _, p := range []api.BudgetSetParams{{}, {Account: string(key)}, {Account: string(key), Reset: []string{"x"}, AtEnd: "end"}, {Account: "1000/run:" + string(r.run.Spec.ID), Reset: []string{"x"}}} {
		_, err := r.SetBudget(0, p)
		wantCode(t, err, api.CodeParams)
	}
	_, err := r.SetBudget(0, api.BudgetSetParams{Account: string(key), Reset: []string{"x"}})
	wantCode(t, err, api.CodeNotFound)
}
