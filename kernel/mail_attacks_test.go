package kernel

import (
	"cmp"
	"context"
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
	"clove.run/clove/kernel/lease"
	"clove.run/clove/store"
)

// Whatever an agent writes beside a message, a task, a job or an event, its sender is the run that calls: a field
// that would say otherwise is refused, also in a call that an acknowledgement carries, and nothing is sent. The
// control is each call without that field, which comes with the caller's own name and id.
func TestNoSenderIsForged(t *testing.T) {
	t.Parallel()
	r := newQueue(t, api.QueueAddParams{})
	forger, other := r.named(1000, "", "forger"), r.named(1000, "", "other")
	for _, grant := range []string{"send:*", "name:*"} {
		_, err := forger.asUser(1000, methods.GrantGive.Name, api.GrantGiveParams{Grant: grant})
		must(t, err)
	}
	must(t, other.subscribe("news"))
	for range 8 { // questions, of which each reply takes one
		_, err := forger.asAgent(agents.MailSend.Name, `{"to":"forger","body":"question","asks":true}`)
		must(t, err)
	}
	questions := answerOf[api.MailReceiveResult](t)(forger.asAgent(agents.MailReceive.Name, `{"most":8}`)).Messages
	calls := map[string]string{
		agents.MailSend.Name: `"to":"other","body":1`, agents.MailPublish.Name: `"topic":"news","body":1`, agents.MailReply.Name: `"id":"` + questions[0].ID + `","body":1`,
		agents.JobAdd.Name: `"queue":"builds","body":1`, agents.EventAppend.Name: `"kind":"agent.x"`, agents.AgentHandoff.Name: `"to":"other","task":1`,
	}
	for method, params := range calls {
		for _, field := range []string{
			fmt.Sprintf(`"from":%q`, other.run.Spec.ID), `"sender":"other"`, `"Sender":"other"`, `"FROM":"other"`, `"principal":"uid:0"`, `"agent":"other"`, `"owner":0`, `"uid":0`, `"by":"uid:0"`,
			`"namespace":"acme"`, `"sent":"2020-01-01T00:00:00Z"`, `"correlation":"0123456789abcdef"`, `"sender":null`,
		} {
			text := "{" + params + "," + field + "}"
			if _, err := forger.asAgent(method, text); err == nil || api.ErrorOf(err).Code != api.CodeParams {
				t.Errorf("%s with %s: %v", method, field, err)
			}
			then := fmt.Sprintf(`{"ids":[%q],"then":[{"method":%q,"params":%s}]}`, questions[1].ID, method, text)
			if _, err := forger.asAgent(agents.MailAck.Name, then); err == nil {
				t.Errorf("a carried %s with %s is done", method, field)
			}
		}
		for _, run := range []string{string(other.run.Spec.ID), "other"} { // a run that the agent is not
			_, err := forger.asAgent(method, fmt.Sprintf(`{%s,"run":%q}`, params, run))
			if err == nil {
				t.Errorf("%s of %s is done", method, run)
			}
		}
	}
	if all := other.inbox(); all != nil {
		t.Fatalf("%q has come", all)
	}
	if job, found := r.claims(); found {
		t.Fatalf("%+v was added", job)
	}
	for method, params := range calls { // the controls
		_, err := forger.asAgent(method, "{"+params+"}")
		must(t, err)
	}
	mail := answerOf[api.MailReceiveResult](t)(other.asAgent(agents.MailReceive.Name, `{"most":64}`)).Messages
	replies := answerOf[api.MailReceiveResult](t)(forger.asAgent(agents.MailReceive.Name, `{"most":64}`)).Messages
	replies = slices.DeleteFunc(replies, func(m api.Mail) bool { return m.Answers == "" })
	job, _ := r.claims()
	if len(mail) != 2 || len(replies) != 1 || job.Sender != "forger" || job.From != forger.run.Spec.ID {
		t.Errorf("%+v, %+v, %+v", mail, replies, job)
	}
	for _, m := range append(mail, replies...) {
		if m.Sender != "forger" || m.From != forger.run.Spec.ID {
			t.Errorf("%+v", m)
		}
	}
	if offers := answerOf[api.OfferListResult](t)(other.asAgent(agents.AgentOffers.Name, `{}`)).Offers; len(offers) != 1 || offers[0].From != forger.run.Spec.ID {
		t.Errorf("%+v", offers)
	}
}

// A flood of mail fills one mailbox and no more: the flooder is refused, and each of its calls waits behind its own, not
// others behind them. As soon as the receiver takes messages, other senders get theirs in, in turns with the flooder;
// and mail between others goes on. The control is the flooder: one more call of its own comes visibly later.
func TestAFloodOfMailIsBounded(t *testing.T) {
	base := newRig(t, agent.Kernel{Grants: []string{"tool:x"}})
	flooder, victim, friend, apart := base.named(1000, "", "flooder"), base.named(1000, "", "critic"), base.named(1000, "", "friend"), base.named(1000, "", "critic-apart")
	sends := func(by *rig, to string) (took time.Duration, rule string) {
		began := time.Now()
		err := by.tell(to, `"`+strings.Repeat("x", 2_000)+`"`)
		if took = time.Since(began); err != nil {
			rule = api.ErrorOf(err).Data.Rule
			if rule != api.RuleMailbox {
				panic(err)
			}
		}
		return took, rule
	}
	takes := func(by *rig, most int) (senders []string) {
		text, err := by.asAgent(agents.MailReceive.Name, api.MailReceiveParams{Most: most, Within: api.Within{WithinMS: 1}})
		if err != nil {
			return nil
		}
		var ids []string
		for _, m := range answerOf[api.MailReceiveResult](t)(text, nil).Messages {
			senders, ids = append(senders, m.Sender), append(ids, m.ID)
		}
		_, err = by.asAgent(agents.MailAck.Name, api.MailAckParams{IDs: ids})
		must(t, err)
		return senders
	}
	flood := func() (end func()) {
		ctx, cancel := context.WithCancel(context.Background())
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() {
				for ctx.Err() == nil {
					sends(flooder, "critic")
				}
			})
		}
		return func() { cancel(); all.Wait() }
	}
	must(t, base.engine.Update("test", func(tx *store.KernelTx) (err error) {
		for range lease.Usual {
			m := &lease.Message{Mail: api.Mail{Sender: "flooder", Body: json.RawMessage(`0`)}}
			err = cmp.Or(err, lease.Put(tx, lease.RunBox(1000, victim.run.Spec.ID), m))
		}
		return err
	}))
	for _, by := range []*rig{flooder, friend} {
		if _, rule := sends(by, "critic"); rule != api.RuleMailbox {
			t.Errorf("control: the mailbox is not full: %q", rule)
		}
	}
	var calm, flooded, own []time.Duration
	turns := 4
	if testing.Short() {
		turns = 2
	}
	for range turns { // in turns: a machine is never the same for long
		for range 15 {
			took, _ := sends(friend, "critic-apart")
			calm = append(calm, took)
		}
		end := flood()
		for range 15 {
			took, rule := sends(friend, "critic-apart")
			if flooded = append(flooded, took); rule != "" {
				t.Errorf("mail between others is refused: %s", rule)
			}
			took, _ = sends(flooder, "critic")
			own = append(own, took)
		}
		end()
		for len(takes(apart, 64)) > 0 {
		}
	}
	for _, all := range [][]time.Duration{calm, flooded, own} {
		slices.Sort(all)
	}
	half := len(calm) / 2
	t.Logf("p50: %s, under a flood %s, the flooder's %s", calm[half], flooded[half], own[half])
	if flooded[half] > 20*calm[half]+5*time.Millisecond {
		t.Errorf("a send between others takes %s, and %s under a flood", calm[half], flooded[half])
	}
	if own[half] < flooded[half]*5/4 {
		t.Errorf("control: a send of the flooder's takes %s, of others %s", own[half], flooded[half])
	}
	// The receiver takes messages under the flood, and the other sender tries again, as it is told: its messages get in.
	end := flood()
	ctx, stop := context.WithTimeout(context.Background(), patience)
	var taking sync.WaitGroup
	taking.Go(func() {
		for ctx.Err() == nil {
			takes(victim, 16)
		}
	})
	in, tries := 0, 0
	for ; in < 10 && ctx.Err() == nil; tries++ {
		if _, rule := sends(friend, "critic"); rule == "" {
			in++
		}
	}
	stop()
	end()
	taking.Wait()
	t.Logf("%d messages of the other sender get in, with %d tries", in, tries)
	if in < 10 {
		t.Errorf("the other sender got %d messages in, with %d tries", in, tries)
	}
	if left := victim.inbox(); len(left) > lease.Usual {
		t.Errorf("%d messages", len(left))
	}
}
