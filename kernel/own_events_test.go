package kernel

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/events"
	"clove.run/clove/store"
)

func (r *rig) happened(kind, causation string) string {
	r.t.Helper()
	return answerOf[api.EventAppendResult](r.t)(r.asAgent(agents.EventAppend.Name, api.EventAppendParams{Kind: kind, Body: json.RawMessage(`{ "n": 1 }`), Causation: causation})).ID
}

// traced is a chain as an agent sees it: METHOD WHAT of each step.
func (r *rig) traced(id string, depth int) (steps []string, truncated bool) {
	r.t.Helper()
	return stepsOf(answerOf[api.TraceResult](r.t)(r.asAgent(agents.EventTrace.Name, api.TraceParams{ID: id, Depth: depth})))
}

func stepsOf(result api.TraceResult) (steps []string, truncated bool) {
	for _, s := range result.Steps {
		steps = append(steps, strings.TrimSpace(s.Method+" "+s.What))
	}
	return steps, result.Truncated
}

func wantSteps(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// An agent's events lead to one another, and the depth says when there are more. They survive a restart.
func TestEventsFollowFromOneAnother(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"messages=10"}})
	first := r.happened("agent.plan", "")
	second := r.happened("agent.step", first)
	third := r.happened("agent.step-2", second)
	steps, truncated := r.traced(third, 2)
	if wantSteps(t, steps, "event.append agent.step-2", "event.append agent.step"); !truncated {
		t.Error("two of three steps are all")
	}
	r.close()
	r.open()
	r.attach(true)
	result := answerOf[api.TraceResult](t)(r.asAgent(agents.EventTrace.Name, api.TraceParams{ID: third}))
	steps, truncated = stepsOf(result)
	if wantSteps(t, steps, "event.append agent.step-2", "event.append agent.step", "event.append agent.plan", "started"); truncated {
		t.Error("the whole chain is cut")
	}
	if s := result.Steps[1]; s.ID != second || s.Causation != first || string(s.Body) != `{"n":1}` {
		t.Errorf("%+v", s)
	}
	if own := r.own("messages"); own.Used != 3 {
		t.Errorf("%+v", own)
	}
	for _, bad := range []api.TraceParams{{ID: third, Depth: 101}, {ID: third, Depth: -1}} {
		_, err := r.asAgent(agents.EventTrace.Name, bad)
		wantCode(t, err, api.CodeParams)
	}
}

// An agent appends kinds of its own only, with small bodies, and what is refused leaves nothing.
func TestEventsOfClovesOwnAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Socket: true, Budgets: []string{"messages=1"}})
	for _, kind := range []string{"", "agent", "agent.", "kernel.x", "kernel.agent.x", "started", "ended", "spawned", "mail.send", "Agent.x", "agent.X", "agent.a b", "agent.\n", "agent." + strings.Repeat("x", 59)} {
		_, err := r.asAgent(agents.EventAppend.Name, api.EventAppendParams{Kind: kind})
		wantCode(t, err, api.CodeParams)
	}
	for _, body := range []string{`"` + strings.Repeat("x", api.EventBodyMost) + `"`} {
		_, err := r.asAgent(agents.EventAppend.Name, api.EventAppendParams{Kind: "agent.x", Body: json.RawMessage(body)})
		wantCode(t, err, api.CodeTooLarge)
	}
	r.happened("agent."+strings.Repeat("x", 58), "")
	_, err := r.asAgent(agents.EventAppend.Name, api.EventAppendParams{Kind: "agent.x"})
	wantCode(t, err, api.CodeBudget)
	must(t, r.engine.Read(func(tx *store.KernelTx) error {
		all, err := events.Rows.Below(tx, "")
		if len(all) != 2 { // the event, and its number
			t.Errorf("%d rows: %+v", len(all), all)
		}
		return err
	}))
}

// The newest events of a run are kept, and go with the run. The list of events is not flooded, and an agent's
// own events do not keep its others out.
func TestEventsAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Grants: []string{"tool:*"}})
	var mu sync.Mutex // guards listed
	listed := map[agent.RunEventKind]int{}
	note := func(e agent.RunEvent) { mu.Lock(); listed[e.Kind]++; mu.Unlock() }
	r.note.Store(&note)
	ids := []string{}
	for range 300 {
		ids = append(ids, r.happened("agent.step", ""))
	}
	_, err := r.asAgent(agents.GrantDerive.Name, api.GrantDeriveParams{From: r.grants()["tool:*"].ID, Grant: "tool:web"})
	must(t, err)
	rows := func() (count int, oldest, newest bool) {
		must(t, r.engine.Read(func(tx *store.KernelTx) error {
			all, err := events.Rows.Below(tx, "")
			for _, row := range all {
				oldest, newest = oldest || row.ID == ids[43], newest || row.ID == ids[299]
			}
			count = len(all)
			return err
		}))
		return count, oldest, newest
	}
	if count, oldest, newest := rows(); count != 257 || oldest || !newest {
		t.Errorf("%d rows, the oldest: %v, the newest: %v", count, oldest, newest)
	}
	mu.Lock()
	if listed["agent.step"] != 20 || listed[agent.RunGrantGiven] != 1 {
		t.Errorf("%v", listed)
	}
	mu.Unlock()
	must(t, r.Happened(agent.RunEvent{ID: r.run.Spec.ID, Owner: r.run.Owner, Kind: agent.RunRemoved, Time: time.Now()}, ""))
	if count, _, _ := rows(); count != 0 {
		t.Errorf("%d rows are left", count)
	}
}

// A chain leads over the agents: from what a worker appends, over the acknowledgement that carries it and the
// message, to the start of the sender. Each agent sees its part, and users theirs.
func TestChainsLeadOverAgents(t *testing.T) {
	t.Parallel()
	base := newRig(t, agent.Kernel{Grants: []string{"send:builder"}})
	run := newRun(1000, agent.Kernel{Grants: []string{"send:next"}})
	run.Spec.Name = "builder"
	worker, next := base.as(run), base.named(1000, "", "next")
	plan := base.happened("agent.plan", "")
	must(t, base.tell("builder", `"job"`))
	job := answerOf[api.MailReceiveResult](t)(worker.asAgent(agents.MailReceive.Name, api.MailReceiveParams{})).Messages[0]
	began := worker.happened("agent.began", job.ID)
	results := answerOf[api.MailAckResult](t)(worker.asAgent(agents.MailAck.Name, ackThen(job.ID, "", sendTo("next"), api.ThenCall{Method: agents.EventAppend.Name, Params: json.RawMessage(`{"kind":"agent.done"}`)},
		api.ThenCall{Method: agents.EventAppend.Name, Params: json.RawMessage(fmt.Sprintf(`{"kind":"agent.known","causation":%q}`, began))}))).Results
	var done, known api.EventAppendResult
	must(t, json.Unmarshal(results[1], &done))
	must(t, json.Unmarshal(results[2], &known))
	last := answerOf[api.MailReceiveResult](t)(next.asAgent(agents.MailReceive.Name, api.MailReceiveParams{})).Messages[0]

	user := func(uid uint32, id string) []string {
		result, err := asks[api.TraceResult](base, uid, methods.AuditTrace.Name, api.TraceParams{ID: id})
		if err != nil {
			wantCode(t, err, api.CodeNotFound)
			return nil
		}
		steps, _ := stepsOf(result)
		return steps
	}
	base.number.Store(&agent.RunEvent{Sequence: 7, Kind: "agent.done", ID: run.Spec.ID, Owner: run.Owner, Causation: done.ID})
	over := []string{"mail.ack", "mail.send builder", "started"}
	wantSteps(t, user(1000, done.ID), append([]string{"event.append agent.done"}, over...)...)
	wantSteps(t, user(1000, "7"), append([]string{"event.append agent.done"}, over...)...)
	base.number.Store(&agent.RunEvent{Sequence: 7, Kind: agent.RunRefused, Detail: "no", ID: run.Spec.ID, Owner: run.Owner, Causation: job.Causation})
	wantSteps(t, user(1000, "7"), "refused no", "mail.send builder", "started")
	wantSteps(t, user(1001, "7"))
	wantSteps(t, user(0, "8"))
	wantSteps(t, user(0, last.ID), append([]string{"mail.send next"}, over...)...)
	wantSteps(t, user(1000, job.ID), "mail.send builder", "started")
	wantSteps(t, user(1000, known.ID), "event.append agent.known", "event.append agent.began", "mail.send builder", "started")
	for _, id := range []string{done.ID, last.ID, job.ID, plan, string(run.Spec.ID), last.Causation} {
		wantSteps(t, user(1001, id))
	}
	down := func(text json.RawMessage, err error) (steps []string) {
		result := answerOf[api.TraceResult](t)(text, err)
		for _, s := range result.Steps {
			steps = append(steps, strings.TrimSpace(fmt.Sprint(s.Depth, " ", s.Method, " ", s.What)))
		}
		return steps
	}
	effects := []string{"0 mail.send builder", "1 event.append agent.began", "2 event.append agent.known", "1 mail.ack", "2 mail.send next", "2 event.append agent.done"}
	for _, id := range []string{job.ID, job.Causation} {
		wantSteps(t, down(base.asUser(1000, methods.AuditTrace.Name, api.TraceParams{ID: id, Down: true})), effects...)
	}
	wantSteps(t, down(base.asUser(0, methods.AuditTrace.Name, api.TraceParams{ID: job.ID, Down: true, Depth: 1})), "0 mail.send builder", "1 event.append agent.began", "1 mail.ack")
	wantSteps(t, down(worker.asAgent(agents.EventTrace.Name, api.TraceParams{ID: job.ID, Down: true})), effects...)
	// The sender sees what it sent, and not what others did because of it.
	wantSteps(t, down(base.asAgent(agents.EventTrace.Name, api.TraceParams{ID: job.Causation, Down: true})), "0 mail.send builder")
	_, err := asks[api.TraceResult](base, 1001, methods.AuditTrace.Name, api.TraceParams{ID: job.ID, Down: true})
	wantCode(t, err, api.CodeNotFound)
	// Each agent sees what it did, and what sent it a message.
	steps, _ := worker.traced(began, 0)
	wantSteps(t, steps, "event.append agent.began", "mail.send builder")
	steps, _ = next.traced(last.ID, 0)
	wantSteps(t, steps, "mail.send next")
	for _, id := range []string{plan, began, job.ID, done.ID, string(run.Spec.ID), "0123456789abcdef", "", "7"} {
		_, err := next.asAgent(agents.EventTrace.Name, api.TraceParams{ID: id})
		wantCode(t, err, api.CodeNotFound)
	}
}

// What an agent may not see is no cause for it: another's event, call and message are answered as what does not
// exist. What it and the runs below it did is.
func TestCausesAreWhatTheAgentMaySee(t *testing.T) {
	t.Parallel()
	base := newRig(t, agent.Kernel{Grants: []string{"send:child"}})
	run := newRun(1000, agent.Kernel{Socket: true})
	run.Spec.Name, run.Parent = "child", base.run.Spec.ID
	run.Above = []agent.Ancestor{{ID: base.run.Spec.ID, Name: "worker"}}
	child, stranger := base.as(run), base.named(1000, "", "stranger")
	sent := answerOf[api.MailSendResult](t)(base.asAgent(agents.MailSend.Name, api.MailSendParams{To: "child", Body: json.RawMessage(`1`)}))
	own, below := base.happened("agent.own", ""), child.happened("agent.below", "")
	for _, c := range []struct {
		what string
		by   *rig
		id   string
		sees bool
	}{
		{"own event", base, own, true}, {"event below", base, below, true}, {"own call", base, sent.Trace, true}, {"event above", child, own, false},
		{"own message", child, sent.ID, true}, {"the call that sent it", child, sent.Trace, true}, {"message of another's mailbox", base, sent.ID, false},
		{"another's event", stranger, own, false}, {"another's call", stranger, sent.Trace, false}, {"another's message", stranger, sent.ID, false}, {"nothing", stranger, "0123456789abcdef", false},
		{"no id", stranger, "own\x00", false}, {"a long one", stranger, strings.Repeat("0", 2000), false},
	} {
		_, err := c.by.asAgent(agents.EventAppend.Name, api.EventAppendParams{Kind: "agent.x", Causation: c.id})
		if (err == nil) != c.sees {
			t.Errorf("%s: %v", c.what, err)
		}
		if want := fmt.Sprintf("no event, call or message %.64q", c.id); err != nil && (api.ErrorOf(err).Code != api.CodeNotFound || api.ErrorOf(err).Message != want) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	for _, e := range base.entries() {
		if e.Method == agents.EventAppend.Name && e.Verdict != audit.VerdictAllow && e.Causation != "" {
			t.Errorf("a refusal has a cause: %+v", e)
		}
	}
}
