package kernel

import (
	"clove.run/clove/kernel/service"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/audit"
)

// A repetition with the same key gets the first answer and changes nothing, also from
// another process. The control is the same call without a key, which counts each time.
func TestTheSameKeyGetsTheFirstAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=100"}})
	first, err := r.asAgent(agents.BudgetCharge.Name, `{"amounts":{"reviews":5},"key":"one"}`)
	must(t, err)
	r.charge("reviews", 5)
	r.charge("reviews", 5)
	for again, text := range []string{`{"amounts":{"reviews":5},"key":"one"}`, `{ "amounts": {"reviews":5}, "key": "one" }`} {
		if again == 1 {
			r.close()
			r.open()
			r.attach(false)
		}
		second, err := r.asAgent(agents.BudgetCharge.Name, text)
		must(t, err)
		if string(second) != string(first) {
			t.Errorf("%s, and again %s", first, second)
		}
	}
	if used := r.line("reviews").Used; used != 15 {
		t.Errorf("%d are used", used)
	}
	for method, text := range map[string]string{
		agents.BudgetCharge.Name:  `{"amounts":{"reviews":6},"key":"one"}`,
		agents.BudgetReserve.Name: `{"amounts":{"reviews":5},"key":"one"}`,
	} {
		_, err := r.asAgent(method, text)
		wantCode(t, err, api.CodeConflict)
	}
	if used := r.line("reviews").Used; used != 15 {
		t.Errorf("%d are used after the conflicts", used)
	}
}

func TestAKeyIsOfOneRun(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=100"}})
	const text = `{"amounts":{"reviews":5},"key":"one"}`
	for range 2 {
		_, err := r.asAgent(agents.BudgetCharge.Name, text)
		must(t, err)
		if used := r.line("reviews").Used; used != 5 {
			t.Errorf("%d are used", used)
		}
		r.run = newRun(1000, r.run.Spec.Kernel)
		r.attach(true)
	}
}

// A call that is refused leaves its key free: the same call may work later.
func TestARefusalTakesNoKey(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=1"}})
	const text = `{"amounts":{"reviews":2},"key":"one"}`
	_, err := r.asAgent(agents.BudgetReserve.Name, text)
	wantCode(t, err, api.CodeBudget)
	_, err = r.asUser(1000, methods.BudgetRaise.Name, `{"amounts":{"reviews":1}}`)
	must(t, err)
	_, err = r.asAgent(agents.BudgetReserve.Name, text)
	must(t, err)
}

func TestKeysAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=100"}})
	for length, fits := range map[int]bool{64: true, 65: false} {
		_, err := r.asAgent(agents.BudgetCharge.Name, fmt.Sprintf(`{"amounts":{"reviews":5},"key":"%s"}`, strings.Repeat("k", length)))
		if fits {
			must(t, err)
		} else {
			wantCode(t, err, api.CodeParams)
		}
	}
	if used := r.line("reviews").Used; used != 5 {
		t.Errorf("%d are used", used)
	}
}

// The agent of a run that root owns calls no method that is not marked for agents. The
// control is root, for whom each method of the Kernel exists that is not for agents alone.
func TestAnAgentOfRootsIsNotRoot(t *testing.T) {
	t.Parallel()
	r := newRigOf(t, newRun(0, agent.Kernel{Budgets: []string{"reviews=100"}}))
	for _, m := range methods.All() {
		ctx, cancel := context.WithCancel(context.Background())
		if m.Waits {
			cancel() // there is nothing to wait for
		}
		_, err := r.Call(ctx, service.Caller{Run: r.run, Agent: true, UID: r.run.Owner.UID}, service.Request{Method: m.Name, Text: encode(api.Nothing{})})
		cancel()
		_, served := r.Methods()[m.Name]
		if exists := err == nil || api.ErrorOf(err).Code != api.CodeMethod; exists != (m.ForAgents() && served) {
			t.Errorf("%s exists for agents: %t (%v)", m.Name, exists, err)
		}
		_, err = r.asUser(0, m.Name, api.Nothing{})
		if exists := err == nil || api.ErrorOf(err).Code != api.CodeMethod; exists != (m.Access != api.AccessSelf && served) {
			t.Errorf("%s exists for root: %t (%v)", m.Name, exists, err)
		}
	}
	for method, text := range map[string]string{
		methods.BudgetRaise.Name: `{"amounts":{"reviews":1}}`,
		methods.BudgetReset.Name: `{"dimensions":["reviews"]}`,
		methods.GrantGive.Name:   `{"grant":"tool:fetch"}`,
	} {
		_, err := r.asAgent(method, text)
		wantCode(t, err, api.CodeMethod)
		_, err = r.asUser(0, method, text)
		must(t, err)
	}
}

// An agent that names another run learns nothing of it, not even whether it exists.
func TestAnAgentNamesNoOtherRun(t *testing.T) {
	t.Parallel()
	r := newRigOf(t, newRun(0, agent.Kernel{Budgets: []string{"reviews=100"}}))
	own := r.run
	r.run = newRun(0, own.Spec.Kernel)
	r.attach(true)
	for _, m := range methods.All() {
		if _, served := r.Methods()[m.Name]; !served || !m.ForAgents() || m.Access == api.AccessSelf { // its parameters name none
			continue
		}
		var messages []string
		for _, run := range []string{string(own.Spec.ID), string(agent.NewID()), own.Spec.Name, "0/worker"} {
			_, err := r.asAgent(m.Name, api.RunParams{Run: run})
			wantCode(t, err, api.CodeNotFound)
			if err != nil {
				messages = append(messages, strings.ReplaceAll(api.ErrorOf(err).Message, run, "RUN"))
			}
		}
		for _, message := range messages {
			if message != messages[0] {
				t.Errorf("%s: %q", m.Name, messages)
			}
		}
	}
	_, err := r.asAgent(agents.BudgetGet.Name, api.RunParams{Run: string(r.run.Spec.ID)})
	must(t, err)
	_, err = r.asAgent(agents.BudgetGet.Name, `{"run":5}`)
	wantCode(t, err, api.CodeParams)
}

// Each refusal is in the log: who, what for, and why. The agent's parameters are there as
// a digest only.
func TestRefusalsAreInTheLog(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=1"}})
	for _, refused := range []struct {
		method, text string
	}{
		{agents.BudgetReserve.Name, `{"amounts":{"reviews":2}}`},
		{agents.BudgetCharge.Name, `{"amounts":{"cpu_ms":2}}`},
		{methods.BudgetRaise.Name, `{"amounts":{"reviews":2}}`},
		{agents.BudgetGet.Name, `{"run":"` + string(agent.NewID()) + `"}`},
		{agents.GrantCheck.Name, `{"what":"secret text"}`},
	} {
		if _, err := r.asAgent(refused.method, refused.text); err == nil {
			t.Errorf("%s is allowed", refused.method)
		}
	}
	_, err := r.asUser(1001, methods.BudgetRaise.Name, `{"amounts":{"reviews":2}}`)
	wantCode(t, err, api.CodeDenied)
	var got []string
	for _, e := range r.entries() {
		if e.Verdict != audit.VerdictDeny {
			continue
		}
		got = append(got, fmt.Sprint(e.Kind, " ", e.Method, " ", e.Code, " ", strings.ReplaceAll(e.Principal, string(r.run.Spec.ID), "ID")))
		text, err := json.Marshal(e)
		must(t, err)
		if e.Run != r.run.Spec.ID || e.Owner != 1000 || e.Agent != "worker" || len(e.Digest) != 64 || e.Queue != 0 || strings.Contains(string(text), "secret") {
			t.Errorf("%s", text)
		}
	}
	want := []string{
		"decision budget.reserve budget run:ID", "decision budget.charge denied run:ID", "decision budget.raise method run:ID",
		"decision budget.get not-found run:ID", "decision grant.check invalid run:ID", "admin budget.raise denied uid:1001",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
