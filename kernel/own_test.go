package kernel

import (
	"context"
	"encoding/json"
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

// The agent of a run without cloved reaches itself by a name, and no other receiver.
func TestMailOfARunOfItsOwn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	own := &Own{Config: Config{CheckNet: checkNet}, Dir: func(id agent.ID) string { return filepath.Join(dir, string(id)) }, Audit: func(agent.ID) string { return filepath.Join(dir, "audit") }}
	run := newRun(0, agent.Kernel{Grants: []string{"name:critic", "send:*"}})
	must(t, own.Attach(context.Background(), run, func(api.Standing) {}))
	t.Cleanup(func() { must(t, own.Close()) })
	call := func(method string, params any) (json.RawMessage, error) {
		return own.Call(context.Background(), run.Spec.ID, method, encode(params))
	}
	for _, to := range []string{"critic", "parent", "other"} {
		_, err := call(agents.MailSend.Name, api.MailSendParams{To: to, Body: json.RawMessage(`1`)})
		wantCode(t, err, api.CodeNotFound)
	}
	_, err := call(agents.NameRegister.Name, api.NameRegisterParams{Name: "critic"})
	must(t, err)
	asked := answerOf[api.MailSendResult](t)(call(agents.MailSend.Name, api.MailSendParams{To: "critic", Body: json.RawMessage(`1`), Asks: true}))
	_, err = call(agents.MailReply.Name, api.MailReplyParams{ID: asked.ID, Body: json.RawMessage(`2`), Ack: true})
	must(t, err)
	if m := answerOf[api.MailAnswerResult](t)(call(agents.MailAnswer.Name, api.MailAnswerParams{ID: asked.ID})).Message; string(m.Body) != "2" {
		t.Errorf("%+v", m)
	}
}

// Close may be called for a run that never attached.
func TestOwnThatNeverAttached(t *testing.T) {
	t.Parallel()
	must(t, (&Own{}).Close())
}
