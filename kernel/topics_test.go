package kernel

import (
	"encoding/json"
	"slices"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/kernel/lease"
	"clove.run/clove/store"
)

func (r *rig) subscribe(topic string) error {
	_, err := r.asAgent(agents.MailSubscribe.Name, api.MailTopicParams{Topic: topic})
	return err
}

func (r *rig) publish(p api.MailPublishParams) (api.MailPublishResult, error) {
	if p.Body == nil {
		p.Body = json.RawMessage(`"news"`)
	}
	text, err := r.asAgent(agents.MailPublish.Name, p)
	var result api.MailPublishResult
	if err == nil {
		err = json.Unmarshal(text, &result)
	}
	return result, err
}

// A message to a topic comes to each live subscriber of the namespace, and to no other run.
func TestATopicIsForAllItsSubscribers(t *testing.T) {
	t.Parallel()
	base := newRig(t, agent.Kernel{Grants: []string{"tool:x"}, Namespace: "acme"})
	one, two, three, gone := base.named(1000, "acme", "one"), base.named(1000, "acme", "two"), base.named(1000, "acme", "three"), base.named(1000, "acme", "gone")
	foreign := []*rig{base.named(1000, "", "four"), base.named(1000, "acme/below", "five"), base.named(2000, "acme", "six")}
	for _, r := range append(foreign, one, two, gone) {
		must(t, r.subscribe("news"))
		must(t, r.subscribe("news")) // a repetition is nothing
	}
	gone.ended(agent.RunEnded)
	result, err := three.publish(api.MailPublishParams{Topic: "news", Trace: "t"})
	if must(t, err); result.Delivered != 2 || result.Full != 0 || result.Trace != "t" {
		t.Errorf("%+v", result)
	}
	for _, r := range []*rig{one, two} {
		if all := r.inbox(); !slices.Equal(all, []string{`"news"`}) {
			t.Error(all)
		}
	}
	m := answerOf[api.MailReceiveResult](t)(one.asAgent(agents.MailReceive.Name, api.MailReceiveParams{})).Messages[0]
	if m.To != "topic/news" || m.Sender != "three" || m.From != three.run.Spec.ID || m.Trace != "t" {
		t.Errorf("%+v", m)
	}
	for _, r := range append(foreign, three, gone) {
		if all := r.inbox(); all != nil {
			t.Errorf("%s: %v", r.run.Spec.Name, all)
		}
	}
	result, err = foreign[2].publish(api.MailPublishParams{Topic: "news"}) // the control: they have the topic of their own
	if must(t, err); result.Delivered != 1 {
		t.Errorf("%+v", result)
	}
	_, err = one.asAgent(agents.MailUnsubscribe.Name, api.MailTopicParams{Topic: "news"})
	must(t, err)
	_, err = one.asAgent(agents.MailUnsubscribe.Name, api.MailTopicParams{Topic: "news"})
	wantCode(t, err, api.CodeNotFound)
	result, err = three.publish(api.MailPublishParams{Topic: "news"})
	if must(t, err); result.Delivered != 1 || len(one.inbox()) != 1 {
		t.Errorf("%+v", result)
	}
	two.ended(agent.RunEnded)
	if result, err = three.publish(api.MailPublishParams{Topic: "news"}); err != nil || result.Delivered != 0 {
		t.Errorf("%+v, %v", result, err)
	}
}

// Both sides need grants, and mail.send means one receiver. The controls are the same calls with a grant.
func TestTopicsNeedGrants(t *testing.T) {
	t.Parallel()
	base := newRig(t, agent.Kernel{Grants: []string{"send:news", "name:news", "send:topic/new"}})
	wantCode(t, base.subscribe("news"), api.CodeDenied)
	_, err := base.publish(api.MailPublishParams{Topic: "news"})
	wantCode(t, err, api.CodeDenied)
	one := base.named(1000, "", "one")
	must(t, one.subscribe("news"))
	_, err = one.publish(api.MailPublishParams{Topic: "news"})
	must(t, err)
	for topic, code := range map[string]api.Code{"other": api.CodeDenied, "*": api.CodeDenied, "": api.CodeParams, "../news": api.CodeParams} {
		wantCode(t, one.subscribe(topic), code)
	}
	wantCode(t, one.tell("topic/news", `1`), api.CodeParams)
	if all := one.inbox(); len(all) != 1 {
		t.Error(all)
	}
}

// A subscriber whose mailbox is full is counted, or refuses the message for all. One message is paid for.
func TestATopicWithAFullMailbox(t *testing.T) {
	t.Parallel()
	base := newRig(t, agent.Kernel{Grants: []string{"send:topic/*"}, Budgets: []string{"messages=2"}})
	one, two := base.named(1000, "", "one"), base.named(1000, "", "two")
	must(t, one.subscribe("news"))
	must(t, two.subscribe("news"))
	must(t, base.engine.Update("test", func(tx *store.KernelTx) (err error) {
		for range lease.Usual {
			err = lease.Put(tx, lease.RunBox(1000, one.run.Spec.ID), &lease.Message{Mail: api.Mail{Body: json.RawMessage(`0`)}})
		}
		return err
	}))
	_, err := base.publish(api.MailPublishParams{Topic: "news", FailOnFull: true})
	if wantCode(t, err, api.CodeBusy); two.inbox() != nil {
		t.Error("one subscriber has a message that was refused")
	}
	result, err := base.publish(api.MailPublishParams{Topic: "news"})
	if must(t, err); result.Delivered != 1 || result.Full != 1 || len(two.inbox()) != 1 {
		t.Errorf("%+v", result)
	}
	if own := base.own("messages"); own.Used != 1 || own.Reserved != 0 {
		t.Errorf("%+v", own)
	}
}
