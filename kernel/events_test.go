package kernel

import (
	"clove.run/clove/kernel/ledger"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/budget"
)

// noted are the events of a rig's kernel.
type noted struct {
	mu  sync.Mutex // guards all
	all []agent.RunEvent
}

func (n *noted) add(e agent.RunEvent) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, e)
}

func (n *noted) of(kind agent.RunEventKind) (found []agent.RunEvent) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range n.all {
		if e.Kind == kind {
			found = append(found, e)
		}
	}
	return found
}

// noting has a rig note its events.
func noting(r *rig) *noted {
	n := &noted{}
	add := n.add
	r.note.Store(&add)
	return n
}

// Grants, budgets and refusals are events. Each has the id that its record has, and the end
// of a run that a budget ended follows from the call that spent it.
func TestDecisionsAreEvents(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Grants: []string{"tool:*"}, Budgets: []string{"reviews=10,warn=8"}})
	n := noting(r)
	from := r.grants()["tool:*"].ID
	given := answerOf[api.GrantResult](t)(r.asAgent(agents.GrantDerive.Name, api.GrantDeriveParams{From: from, Grant: "tool:web"})).Grant
	_, err := r.asAgent(agents.GrantRevoke.Name, api.GrantRevokeParams{ID: given.ID})
	must(t, err)
	r.charge("reviews", 8)
	_, err = r.asAgent(agents.BudgetCharge.Name, api.BudgetChargeParams{Amounts: map[string]int64{"cpu_ms": 1}})
	wantCode(t, err, api.CodeDenied)
	r.charge("reviews", 3)
	for kind, detail := range map[agent.RunEventKind]string{
		agent.RunGrantGiven: "tool:web", agent.RunGrantRevoked: "tool:web", agent.RunBudgetWarned: "reviews", agent.RunBudgetEnded: "11 of 10, at end: end",
		agent.RunRefused: "denied: budget.charge: cpu_ms=1",
	} {
		found := n.of(kind)
		if len(found) != 1 || !strings.Contains(found[0].Detail, detail) || found[0].ID != r.run.Spec.ID || found[0].Causation == "" || found[0].Correlation != found[0].Causation {
			t.Errorf("%s: %+v", kind, found)
		}
	}
	must(t, r.Happened(r.event(agent.RunEnded), ""))
	entries := r.entries()
	ended := n.of(agent.RunBudgetEnded)[0].Causation
	end := entries[len(entries)-1]
	if end.Kind != audit.KindEnd || end.Causation != ended || end.Correlation != ended {
		t.Errorf("%+v, want %s", end, ended)
	}
	if cause, _ := r.caused.Load(r.run.Spec.ID); cause != ended {
		t.Errorf("the event of the end gets the cause %v, want %s", cause, ended)
	}
	charged := 0
	for _, e := range entries {
		if e.Kind == audit.KindDecision && e.Correlation == ended && e.What == "reviews=3" {
			charged++
		}
	}
	if charged != 1 {
		t.Errorf("%d records of the call that ended it", charged)
	}
}

// An agent that is refused again and again is some events, and one says how many are not
// there. The events of its budgets come all the same.
func TestAnAgentCannotFloodTheEvents(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=10,warn=8"}})
	n := noting(r)
	refuse := func() {
		t.Helper()
		_, err := r.asAgent(agents.BudgetCharge.Name, api.BudgetChargeParams{Amounts: map[string]int64{"cpu_ms": 1}})
		wantCode(t, err, api.CodeDenied)
	}
	const calls = 200
	for range calls {
		refuse()
	}
	r.charge("reviews", 9)
	if refused := n.of(agent.RunRefused); len(refused) != 20 || len(n.of(agent.RunBudgetWarned)) != 1 {
		t.Errorf("%d refusals, %+v", len(refused), n.of(agent.RunBudgetWarned))
	}
	r.clock.Add(5)
	refuse()
	if refused := n.of(agent.RunRefused); len(refused) != 20+1 || !strings.Contains(refused[20].Detail, "180 events") {
		t.Errorf("%+v", refused[len(refused)-1])
	}
}

// Calls of models are bounded apart: they hide no refusal, and each has its records.
func TestCallsOfModelsAreEvents(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Grants: []string{"model:small"}})
	n := noting(r)
	id, err := r.Ledger.Reserve(r.run, ledger.Spending{Service: "model", Method: "model.call", What: "model:small", Fit: exactly(budget.Amounts{budget.ModelCalls: 1})})
	must(t, err)
	r.pays(id, 1, 0)
	for range 3 * 20 {
		r.Ledger.Called(r.run.Spec.ID, agent.RunModelCalled, id, "small at near: ok")
	}
	r.Ledger.Called("another", agent.RunModelCalled, id, "of no run that lives")
	_, err = r.asAgent(agents.BudgetCharge.Name, api.BudgetChargeParams{Amounts: map[string]int64{"cpu_ms": 1}})
	wantCode(t, err, api.CodeDenied)
	if called := n.of(agent.RunModelCalled); len(called) != 20 || called[0].Detail != "small at near: ok" || called[0].Correlation != id || len(n.of(agent.RunRefused)) != 1 {
		t.Errorf("%d: %+v", len(called), called)
	}
	r.clock.Add(30)
	r.Ledger.Called(r.run.Spec.ID, agent.RunModelCalled, id, "small at near: ok")
	if called := n.of(agent.RunModelCalled); len(called) != 20+1 || !strings.Contains(called[20].Detail, "40 events") {
		t.Errorf("%+v", called[len(called)-1])
	}
	methods := ""
	for _, e := range r.entries() {
		if e.Correlation == id {
			methods += e.Method + " "
		}
	}
	if methods != "model.call model.settle " {
		t.Errorf("the records of the call are %q", methods)
	}
}

// A check is a decision: it is in the log, whatever its answer is.
func TestChecksAreInTheLog(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Grants: []string{"tool:web"}})
	id := r.grants()["tool:web"].ID
	for _, what := range []string{"tool:web", "tool:other"} {
		_, err := r.asAgent(agents.GrantCheck.Name, api.GrantCheckParams{What: what})
		must(t, err)
	}
	var got []string
	for _, e := range r.entries() {
		if e.Method == agents.GrantCheck.Name {
			got = append(got, e.Verdict+" "+e.What+" "+e.Rule)
		}
	}
	if strings.Join(got, "\n") != "allow tool:web "+id+"\ndeny tool:other " {
		t.Errorf("%q", got)
	}
}

// The target of a refused call is in its record, and the digest of its parameters where nothing
// could be read.
func TestARefusalSaysWhatWasRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Grants: []string{"tool:web"}, Budgets: []string{"reviews=1"}})
	from := r.grants()["tool:web"].ID
	wants := map[string]string{"budget.charge": "cpu_ms=2", "budget.reserve": "reviews=2", "grant.derive": "tool:other", "grant.check": "sha256:", "grant.revoke": "sha256:"}
	for method, params := range map[string]string{
		"budget.charge": `{"amounts":{"cpu_ms":2}}`, "budget.reserve": `{"amounts":{"reviews":2}}`, "grant.derive": `{"from":"` + from + `","grant":"tool:other"}`,
		"grant.check": `{"what":"nonsense of a secret"}`, "grant.revoke": `{"id":"a secret"}`,
	} {
		if _, err := r.asAgent(method, params); err == nil {
			t.Errorf("%s is allowed", method)
		}
	}
	for _, e := range r.entries() {
		want, is := wants[e.Method]
		if !is || e.Verdict != audit.VerdictDeny {
			continue
		}
		if delete(wants, e.Method); !strings.HasPrefix(e.What, want) || strings.Contains(e.What, "secret") {
			t.Errorf("%s: %q", e.Method, e.What)
		}
	}
	if len(wants) > 0 {
		t.Errorf("no record of %v", wants)
	}
}

// An agent reads the log of a namespace with a grant that covers it, and nothing without. It
// sees its owner's records only.
func TestAnAgentReadsTheLogWithAGrant(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Grants: []string{"audit:acme"}})
	for _, e := range []audit.Entry{{Owner: 1001, Namespace: "acme"}, {Owner: 1000, Namespace: "other"}, {Owner: 1000, Namespace: "acme/research"}, {Owner: 1000, Namespace: "acme"}} {
		e.Kind = audit.KindDecision
		_, err := r.log.Append(e)
		must(t, err)
	}
	got := answerOf[api.AuditReadResult](t)(r.asAgent(agents.AuditRead.Name, `{"namespace":"acme"}`))
	if len(got.Records) != 2 || got.Next != 0 || !strings.Contains(string(got.Records[0]), `"namespace":"acme/research"`) || !strings.Contains(string(got.Records[1]), `"namespace":"acme"`) {
		t.Errorf("%s", got.Records)
	}
	for params, code := range map[string]api.Code{`{"namespace":"other"}`: api.CodeDenied, `{"namespace":"acmeother"}`: api.CodeDenied, `{"namespace":""}`: api.CodeParams, `{}`: api.CodeParams} {
		_, err := r.asAgent(agents.AuditRead.Name, params)
		wantCode(t, err, code)
	}
	if _, err := r.asUser(1000, agents.AuditRead.Name, `{"namespace":"other"}`); err != nil {
		t.Errorf("the owner: %v", err)
	}
	bare := newRig(t, agent.Kernel{})
	_, err := bare.asAgent(agents.AuditRead.Name, `{"namespace":"acme"}`)
	wantCode(t, err, api.CodeDenied)
}

// A long log comes in parts that fit into an answer.
func TestTheLogIsReadInParts(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Grants: []string{"audit:acme"}})
	large := strings.Repeat("\x01", 500)
	const records = 100
	for range records {
		_, err := r.log.Append(audit.Entry{Kind: audit.KindDecision, Owner: 1000, Namespace: "acme", What: large})
		must(t, err)
	}
	read, after := 0, uint64(0)
	for {
		part := answerOf[api.AuditReadResult](t)(r.asAgent(agents.AuditRead.Name, api.AuditReadParams{Namespace: "acme", After: after}))
		text, err := json.Marshal(part)
		must(t, err)
		if read += len(part.Records); len(text) > api.MaxAgentLine || read > records {
			t.Fatalf("%d bytes, %d records", len(text), read)
		}
		if after = part.Next; after == 0 {
			break
		}
	}
	if read != records {
		t.Errorf("%d records", read)
	}
}
