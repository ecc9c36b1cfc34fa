package kernel

import (
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/audit"
)

// Each refusal says in fixed words what refused it: code, word, step, rule and hint. The log
// has the rule too.
func TestRefusalsAreTyped(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Socket: true, Grants: []string{"state:/notes:ro"}, Budgets: []string{"reviews=10"}})
	from, own := r.grants()["state:/notes:ro"].ID, string(r.run.Spec.ID)
	other := string(agent.NewID())
	type refused struct {
		asAgent          bool
		uid              uint32
		method, text     string
		word, step, rule string
	}
	rows := []refused{
		{true, 0, methods.GrantGive.Name, `{"grant":"tool:fetch"}`, "method", "known", "methods"},
		{true, 0, methods.RunStop.Name, `{}`, "method", "known", "methods"},
		{true, 0, "run.nonsense", `{}`, "method", "known", ""},
		{true, 0, agents.BudgetGet.Name, `{"run":"` + other + `"}`, "not-found", "known", "own-run"},
		{true, 0, agents.GrantDerive.Name, `{"from":"` + from + `","grant":"state:/notes:rw"}`, "denied", "grant", "grant:" + from},
		{true, 0, agents.GrantDerive.Name, `{"from":"` + from + `","grant":"state:/notes:ro","to":"` + other + `"}`, "not-found", "grant", "own-run"},
		{true, 0, agents.GrantRevoke.Name, `{"id":"` + from + `"}`, "denied", "grant", "grant:" + from},
		{false, 1000, methods.GrantGive.Name, `{"grant":"net:forbidden.example"}`, "denied", "grant", "network"},
		{true, 0, agents.BudgetReserve.Name, `{"amounts":{"reviews":11}}`, "budget", "budget", "budget:1000/run:" + own + " reviews"},
		{true, 0, agents.BudgetCharge.Name, `{"amounts":{"cpu_ms":1}}`, "denied", "budget", "counted:cpu_ms"},
		{false, 1001, methods.BudgetRaise.Name, `{"amounts":{"reviews":5}}`, "denied", "budget", "budget:1000/run:" + own + " reviews"},
	}
	for _, row := range rows {
		var err error
		if row.asAgent {
			_, err = r.asAgent(row.method, row.text)
		} else {
			_, err = r.asUser(row.uid, row.method, row.text)
		}
		if err == nil {
			t.Errorf("%s %s is done", row.method, row.text)
			continue
		}
		e := api.ErrorOf(err)
		if e.Data.Word != row.word || e.Data.Step != row.step || e.Data.Rule != row.rule || e.Data.Hint == "" || e.Code == 0 {
			t.Errorf("%s %s: %d %+v", row.method, row.text, e.Code, e.Data)
		}
	}
	_, err := r.SetBudget(1000, api.BudgetSetParams{Account: "1000", Limits: []string{"reviews=1"}})
	if e := api.ErrorOf(err); e.Data.Word != "denied" || e.Data.Step != "budget" || e.Data.Rule != "methods" {
		t.Errorf("%+v", e)
	}
	denied := 0
	for _, e := range r.entries() {
		if e.Verdict != audit.VerdictDeny {
			continue
		}
		if denied == len(rows) { // the last one is about no run
			if e.Method != methods.BudgetSet.Name || e.Run != "" || e.Rule != "methods" || e.What != "1000 reviews=1" {
				t.Errorf("the log has %+v", e)
			}
		} else if row := rows[denied]; e.Rule != row.rule || e.Code != row.word {
			t.Errorf("%s: the log has %q %q", row.method, e.Code, e.Rule)
		}
		denied++
	}
	if denied != len(rows)+1 {
		t.Errorf("%d of %d are in the log", denied, len(rows))
	}
}

// An expired grant, and one whose uses are promised already, name themselves as the rule.
func TestEndedGrantsAreTheRule(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Socket: true})
	uses := int64(2)
	g := answerOf[api.GrantResult](t)(r.asUser(1000, methods.GrantGive.Name, api.GrantGiveParams{Grant: "tool:fetch", Uses: &uses, Expires: r.engine.Now().Add(time.Minute)})).Grant
	more := int64(3)
	derive := func(uses *int64, want string) {
		t.Helper()
		_, err := r.asAgent(agents.GrantDerive.Name, api.GrantDeriveParams{From: g.ID, Grant: "tool:fetch", Uses: uses})
		wantCode(t, err, api.CodeDenied)
		if e := api.ErrorOf(err); e.Data.Rule != "grant:"+g.ID || !strings.Contains(e.Message, want) {
			t.Errorf("%+v", e)
		}
	}
	derive(&more, "2 uses left")
	r.clock.Add(60)
	derive(nil, "expired")
}
