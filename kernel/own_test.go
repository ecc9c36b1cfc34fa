package kernel

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/audit"
)

// A run without cloved has a file and a log of its own, with the same decisions in them.
func TestARunOfItsOwn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	logs := func(id agent.ID) string { return audit.RunDir(filepath.Join(dir, "audit"), id) }
	own := &Own{Config: Config{CheckNet: checkNet}, Dir: func(id agent.ID) string { return filepath.Join(dir, string(id)) }, Audit: logs}
	run := newRun(0, agent.Kernel{Budgets: []string{"tokens=1000"}, Grants: []string{"tool:fetch"}})
	standings := make(chan api.Standing, 10)
	must(t, own.Attach(context.Background(), run, func(now api.Standing) { standings <- now }))
	call := func(method, text string) error {
		_, err := own.Call(context.Background(), run.Spec.ID, method, []byte(text))
		return err
	}
	<-standings
	must(t, call(agents.BudgetCharge.Name, `{"amounts":{"tokens":1001}}`))
	if now := receive(t, standings); len(now.Spent) != 1 {
		t.Errorf("%+v", now)
	}
	wantCode(t, call(methods.BudgetRaise.Name, `{"amounts":{"tokens":1}}`), api.CodeMethod) // root's agent is not root
	must(t, own.Close())
	if err := call(agents.BudgetGet.Name, `{}`); err == nil {
		t.Error("it answers after its end")
	}
	var methods []string
	must(t, audit.Query(logs(run.Spec.ID), audit.Filter{}, func(e audit.Entry) error {
		methods = append(methods, string(e.Kind)+" "+e.Method)
		return nil
	}))
	slices.Sort(methods) // a refusal may be there before a change that was made before it
	if len(methods) != 3 || methods[2] != "start started" || methods[0] != "decision budget.charge" || methods[1] != "decision budget.raise" {
		t.Errorf("%q", methods)
	}
}

// Close may be called for a run that never attached.
func TestOwnThatNeverAttached(t *testing.T) {
	t.Parallel()
	must(t, (&Own{}).Close())
}
