package kernel

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/audit"
)

// acker is a run with one message, and a run to which it may send.
func acker(t *testing.T) (base, worker, next *rig, id string) {
	t.Helper()
	base = newRig(t, agent.Kernel{Grants: []string{"send:*"}})
	run := newRun(1000, agent.Kernel{Grants: []string{"send:next"}, Budgets: []string{"messages=3", "reviews=10"}})
	run.Spec.Name = "work"
	worker, next = base.as(run), base.named(1000, "", "next")
	must(t, base.tell("work", `"job"`))
	return base, worker, next, answerOf[api.MailReceiveResult](t)(worker.asAgent(agents.MailReceive.Name, api.MailReceiveParams{})).Messages[0].ID
}

func ackThen(id, key string, then ...api.ThenCall) api.MailAckParams {
	return api.MailAckParams{IDs: []string{id}, Then: then, Keyed: api.Keyed{Key: key}}
}

func sendTo(to string) api.ThenCall {
	return api.ThenCall{Method: agents.MailSend.Name, Params: encode(api.MailSendParams{To: to, Body: json.RawMessage(`"result"`)})}
}

var oneReview = api.ThenCall{Method: agents.BudgetCharge.Name, Params: json.RawMessage(`{"amounts":{"reviews":1}}`)}

// What an acknowledgement carries is done with it, each with its entry, its grant and its costs; a repetition
// does nothing and gets the same.
func TestAnAckCarriesCalls(t *testing.T) {
	t.Parallel()
	base, worker, next, id := acker(t)
	for range 2 {
		result := answerOf[api.MailAckResult](t)(worker.asAgent(agents.MailAck.Name, ackThen(id, "k", sendTo("next"), oneReview, sendTo("next"))))
		var sent api.MailSendResult
		if len(result.Results) != 3 || json.Unmarshal(result.Results[0], &sent) != nil || sent.ID == "" {
			t.Errorf("%+v", result)
		}
	}
	if all := next.inbox(); !slices.Equal(all, []string{`"result"`, `"result"`}) {
		t.Error(all)
	}
	if all := worker.inbox(); all != nil {
		t.Error(all)
	}
	if own := worker.own("reviews"); own.Used != 1 {
		t.Errorf("%+v", own)
	}
	if own := worker.own("messages"); own.Used != 2 || own.Reserved != 0 {
		t.Errorf("%+v", own)
	}
	var ack string
	var caused int
	all := base.entries()
	for _, e := range all {
		if e.Verdict == audit.VerdictAllow && e.Method == agents.MailAck.Name {
			ack = e.Correlation
		}
	}
	for _, e := range all {
		if ack != "" && e.Causation == ack && e.Verdict == audit.VerdictAllow && e.Principal == audit.PrincipalRun(worker.run.Spec.ID) {
			caused++
		}
	}
	if caused != 3 {
		t.Errorf("%d entries are caused by %q", caused, ack)
	}
}

// One call that is refused refuses all, and nothing has changed. The control of each is the same without it.
func TestOneRefusalRefusesAll(t *testing.T) {
	t.Parallel()
	carries := api.ThenCall{Method: agents.MailAck.Name, Params: encode(api.MailAckParams{IDs: []string{"none"}})}
	for name, row := range map[string]struct {
		call api.ThenCall
		code api.Code
	}{
		"no grant":              {sendTo("other"), api.CodeDenied},
		"no budget":             {api.ThenCall{Method: agents.BudgetReserve.Name, Params: json.RawMessage(`{"amounts":{"reviews":11}}`)}, api.CodeBudget},
		"refused by its method": {carries, api.CodeNotFound},
		"no parameters":         {api.ThenCall{Method: agents.MailSend.Name, Params: json.RawMessage(`{"nonsense":1}`)}, api.CodeParams},
		"a sender of its own":   {api.ThenCall{Method: agents.MailSend.Name, Params: json.RawMessage(`{"to":"next","body":1,"from":"0123456789abcdef"}`)}, api.CodeParams},
		"no method":             {api.ThenCall{Method: "none.such"}, api.CodeMethod},
		"a user's method":       {api.ThenCall{Method: "grant.give", Params: json.RawMessage(`{"grant":"send:*"}`)}, api.CodeMethod},
		"another run":           {api.ThenCall{Method: agents.BudgetCharge.Name, Params: json.RawMessage(`{"run":"0123456789abcdef","amounts":{"reviews":1}}`)}, api.CodeNotFound},
		"a method that reads":   {api.ThenCall{Method: agents.AgentGet.Name}, api.CodeParams},
		"a method that waits":   {api.ThenCall{Method: agents.MailReceive.Name}, api.CodeParams},
		"a key":                 {api.ThenCall{Method: agents.NameRelease.Name, Params: json.RawMessage(`{"name":"x","key":"k"}`)}, api.CodeParams},
	} {
		_, worker, next, id := acker(t)
		_, err := worker.asAgent(agents.MailAck.Name, ackThen(id, name, sendTo("next"), oneReview, row.call))
		if wantCode(t, err, row.code); t.Failed() {
			t.Fatal(name, err)
		}
		if own, sent := worker.own("reviews"), worker.own("messages"); own.Used != 0 || own.Reserved != 0 || sent.Used != 0 || sent.Reserved != 0 || next.inbox() != nil || len(worker.inbox()) != 1 {
			t.Errorf("%s: something has changed: %+v, %+v", name, own, sent)
		}
		_, err = worker.asAgent(agents.MailAck.Name, ackThen(id, name+" 2", sendTo("next"), oneReview))
		must(t, err)
		if own := worker.own("reviews"); own.Used != 1 || len(next.inbox()) != 1 || worker.inbox() != nil {
			t.Errorf("%s: control: %+v", name, own)
		}
	}
}

// A call carries few others, and these carry none. Budgets count what is carried: of more messages than are
// left none is sent.
func TestBoundsOfCarriedCalls(t *testing.T) {
	t.Parallel()
	base, worker, next, id := acker(t)
	must(t, base.tell("work", `"another"`))
	other := answerOf[api.MailReceiveResult](t)(worker.asAgent(agents.MailReceive.Name, api.MailReceiveParams{After: id})).Messages[0].ID
	nested := func(then ...api.ThenCall) []api.ThenCall {
		return []api.ThenCall{{Method: agents.MailAck.Name, Params: encode(ackThen(other, "", then...))}}
	}
	must(t, worker.tell("next", `"for itself"`))
	for name, c := range map[string]struct {
		then []api.ThenCall
		code api.Code
	}{
		"too many":               {slices.Repeat([]api.ThenCall{oneReview}, 17), api.CodeParams},
		"more than is left":      {slices.Repeat([]api.ThenCall{sendTo("next")}, 3), api.CodeBudget},
		"one that carries":       {nested(sendTo("next")), api.CodeParams},
		"more than the grant":    {[]api.ThenCall{sendTo("next"), sendTo("nex")}, api.CodeDenied},
		"as many, one a failure": {append(slices.Repeat([]api.ThenCall{oneReview}, 10), api.ThenCall{Method: agents.BudgetReserve.Name, Params: json.RawMessage(`{"amounts":{"reviews":1}}`)}), api.CodeBudget},
	} {
		_, err := worker.asAgent(agents.MailAck.Name, ackThen(id, fmt.Sprint(name), c.then...))
		if wantCode(t, err, c.code); t.Failed() {
			t.Fatal(name, err)
		}
	}
	_, err := worker.asAgent(agents.MailAck.Name, ackThen(id, "", append(nested(), sendTo("next"), sendTo("next"))...))
	must(t, err)
	if all := next.inbox(); len(all) != 3 || worker.inbox() != nil {
		t.Error(all)
	}
}
