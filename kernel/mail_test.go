package kernel

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/lease"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// post is a rig with a run that sends and one that receives.
type post struct {
	*rig
	other agent.Run
}

func newPost(t *testing.T) *post {
	t.Helper()
	p := &post{rig: newRig(t, agent.Kernel{Grants: []string{"send:critic", "send:gone"}})}
	p.other = newRun(1000, agent.Kernel{Socket: true})
	p.other.Spec.Name = "critic"
	must(t, p.Attach(context.Background(), p.other, true, func(api.Standing) {}))
	p.runs.Store(p.other.Spec.ID, p.other)
	return p
}

func (p *post) as(run agent.Run, method string, params any) (json.RawMessage, error) {
	return p.Call(context.Background(), service.Caller{Run: run, Agent: true, UID: run.Owner.UID}, service.Request{Method: method, Text: encode(params)})
}

func (p *post) send(params api.MailSendParams) (api.MailSendResult, error) {
	p.t.Helper()
	if params.To == "" {
		params.To = "critic"
	}
	if params.Body == nil {
		params.Body = json.RawMessage(`1`)
	}
	text, err := p.asAgent(agents.MailSend.Name, params)
	var result api.MailSendResult
	if err == nil {
		must(p.t, json.Unmarshal(text, &result))
	}
	return result, err
}

func (p *post) sent(params api.MailSendParams) api.MailSendResult {
	p.t.Helper()
	result, err := p.send(params)
	must(p.t, err)
	return result
}

func (p *post) received(after string, most int) []api.Mail {
	p.t.Helper()
	return answerOf[api.MailReceiveResult](p.t)(p.as(p.other, agents.MailReceive.Name, api.MailReceiveParams{After: after, Most: most})).Messages
}

func bodies(all []api.Mail) (texts []string) {
	for _, m := range all {
		texts = append(texts, string(m.Body))
	}
	return texts
}

// A message comes again until it is acknowledged, with what clove says of it. Higher priorities come
// first, and of one the order of sending.
func TestMailComesUntilItIsAcknowledged(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	first := p.sent(api.MailSendParams{Body: json.RawMessage(`{"n": 1}`), Trace: "t"})
	p.sent(api.MailSendParams{Body: json.RawMessage(`2`)})
	p.sent(api.MailSendParams{Body: json.RawMessage(`3`), Priority: 9})
	p.close()
	p.open() // a cloved that begins anew
	p.attach(false)
	must(t, p.Attach(context.Background(), p.other, false, func(api.Standing) {}))
	for range 2 {
		if all := p.received("", 10); !slices.Equal(bodies(all), []string{"3", `{"n":1}`, "2"}) {
			t.Fatalf("%+v", all)
		}
	}
	all := p.received("", 10)
	if m := all[1]; m.ID != first.ID || m.From != p.run.Spec.ID || m.Sender != "worker" || m.Trace != "t" || m.Causation == "" || m.Sent != p.config.Clock() {
		t.Errorf("%+v", m)
	}
	if rest := p.received(all[0].ID, 1); rest[0].ID != first.ID {
		t.Errorf("%+v", rest)
	}
	_, err := p.as(p.other, agents.MailAck.Name, api.MailAckParams{IDs: []string{first.ID, "nothing"}})
	wantCode(t, err, api.CodeNotFound)
	_, err = p.as(p.other, agents.MailAck.Name, api.MailAckParams{IDs: []string{first.ID, all[0].ID}})
	must(t, err)
	if all := p.received("", 10); !slices.Equal(bodies(all), []string{"2"}) {
		t.Errorf("%+v", all)
	}
}

// What a sender may not do is refused, and nothing is in the mailbox. The control is a sound message.
func TestMailThatIsRefused(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	stranger := newRun(2000, agent.Kernel{Socket: true})
	stranger.Spec.Name = "critic"
	p.runs.Store(stranger.Spec.ID, stranger)
	for name, c := range map[string]struct {
		text string
		code api.Code
	}{
		"no grant":                    {`{"to":"other","body":1}`, api.CodeDenied},
		"no receiver":                 {`{"to":"gone","body":1}`, api.CodeNotFound},
		"a sender of its own choice":  {`{"to":"critic","body":1,"from":"` + string(p.other.Spec.ID) + `"}`, api.CodeParams},
		"a time of its own choice":    {`{"to":"critic","body":1,"sent":"2020-01-01T00:00:00Z"}`, api.CodeParams},
		"no body":                     {`{"to":"critic"}`, api.CodeTooLarge},
		"too long":                    {`{"to":"critic","body":"` + strings.Repeat("x", api.BodyMost) + `"}`, api.CodeTooLarge},
		"a priority that is none":     {`{"to":"critic","body":1,"priority":10}`, api.CodeParams},
		"an expiry in the past":       {`{"to":"critic","body":1,"expires_ms":-1}`, api.CodeParams},
		"a trace without end":         {`{"to":"critic","body":1,"trace":"` + strings.Repeat("x", 65) + `"}`, api.CodeParams},
		"by an id without a grant":    {`{"to":"` + string(p.other.Spec.ID) + `","body":1}`, api.CodeDenied},
		"a parent that is not there":  {`{"to":"parent","body":1}`, api.CodeDenied},
		"a pattern":                   {`{"to":"*","body":1}`, api.CodeDenied},
		"another owner's by its name": {`{"to":"0/critic","body":1}`, api.CodeDenied},
	} {
		_, err := p.asAgent(agents.MailSend.Name, c.text)
		if wantCode(t, err, c.code); err == nil {
			t.Error(name)
		}
	}
	p.sent(api.MailSendParams{Body: json.RawMessage(`"sound"`)})
	if all := p.received("", 64); len(all) != 1 {
		t.Errorf("%+v", all)
	}
	must(t, p.engine.Read(func(tx *store.KernelTx) error {
		box, err := lease.Boxes.Get(tx, lease.RunBox(2000, stranger.Spec.ID).ID())
		if box != nil {
			t.Error("another owner's run has mail")
		}
		return err
	}))
}

// A full mailbox refuses its senders, of many at once exactly those that do not fit, and takes mail again
// when some is acknowledged.
func TestAFullMailbox(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	const before = lease.Usual - 5
	for range before {
		p.sent(api.MailSendParams{})
	}
	var sent, refused atomic.Int64
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			switch _, err := p.send(api.MailSendParams{}); {
			case err == nil:
				sent.Add(1)
			case api.ErrorOf(err).Data.Rule == api.RuleMailbox:
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if sent.Load() != 5 || refused.Load() != 59 {
		t.Errorf("%d, %d", sent.Load(), refused.Load())
	}
	first := p.received("", 1)[0]
	_, err := p.as(p.other, agents.MailAck.Name, api.MailAckParams{IDs: []string{first.ID}})
	must(t, err)
	p.sent(api.MailSendParams{})
	_, err = p.send(api.MailSendParams{})
	wantCode(t, err, api.CodeBusy)
}

// A sender that says so waits for place in a full mailbox, and gets it when its receiver acknowledges something,
// with one message and one record. The control does not wait. The wait has an end, is not carried by another call,
// and ends with the receiver.
func TestASenderWaitsForPlace(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	for range lease.Usual {
		p.sent(api.MailSendParams{})
	}
	_, err := p.send(api.MailSendParams{})
	wantCode(t, err, api.CodeBusy)
	_, err = p.send(api.MailSendParams{WaitMS: 20})
	if wantCode(t, err, api.CodeBusy); err != nil && api.ErrorOf(err).Data.Rule != api.RuleMailbox {
		t.Error(err)
	}
	_, err = p.send(api.MailSendParams{WaitMS: -1})
	wantCode(t, err, api.CodeParams)
	const senders = 8
	type answer struct {
		result api.MailSendResult
		err    error
	}
	came := make(chan answer, senders)
	wait := func(i int) {
		result, err := p.send(api.MailSendParams{Body: encode(i), WaitMS: 600_000, Keyed: api.Keyed{Key: fmt.Sprint("k", i)}})
		came <- answer{result, err}
	}
	for i := range senders {
		go wait(i)
	}
	none := func() {
		t.Helper()
		select {
		case a := <-came:
			t.Fatalf("it did not wait: %+v", a)
		case <-time.After(50 * time.Millisecond):
		}
	}
	ack := func() {
		_, err := p.as(p.other, agents.MailAck.Name, api.MailAckParams{IDs: []string{p.received("", 1)[0].ID}})
		must(t, err)
	}
	none()
	for range senders {
		ack()
		if a := <-came; a.err != nil || a.result.WaitedMS < 1 {
			t.Fatalf("%+v", a)
		}
	}
	_, err = p.as(p.run, agents.MailSend.Name, api.MailSendParams{To: "critic", Body: encode(1)})
	wantCode(t, err, api.CodeBusy) // none came more than once
	go wait(senders)
	none()
	gone := p.other
	gone.State = agent.StateEnded
	p.runs.Store(gone.Spec.ID, gone)
	must(t, p.Happened(agent.RunEvent{Kind: agent.RunEnded, ID: gone.Spec.ID, Name: gone.Spec.Name, Owner: gone.Owner, Time: p.config.Clock()}, ""))
	wantCode(t, (<-came).err, api.CodeNotFound)
	denied := 0
	for _, e := range p.entries() {
		if e.Verdict == audit.VerdictDeny {
			denied++
		}
	}
	if denied != 4 { // the two that did not wait, the wrong time, and the end: none of a call that waited
		t.Errorf("%d refusals", denied)
	}
}

// A call that another carries does not wait for place; the control is one that does not want to.
func TestACarriedMessageDoesNotWait(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	p.runs.Store(p.run.Spec.ID, p.run)
	posted, err := asks[api.MailSendResult](p.rig, 1000, methods.MailPost.Name, api.MailPostParams{To: "worker", Body: encode(1)})
	must(t, err)
	ack := func(ms int64) error {
		then := []api.ThenCall{{Method: agents.MailSend.Name, Params: encode(api.MailSendParams{To: "critic", Body: encode(1), WaitMS: ms})}}
		_, err := p.asAgent(agents.MailAck.Name, api.MailAckParams{IDs: []string{posted.ID}, Then: then})
		return err
	}
	wantCode(t, ack(1), api.CodeParams)
	must(t, ack(0))
}

// What has expired is not received, and becomes a dead letter, as what its receiver rejects.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	p.sent(api.MailSendParams{Body: json.RawMessage(`"late"`), ExpiresMS: 1000})
	p.sent(api.MailSendParams{Body: json.RawMessage(`"bad"`), ExpiresMS: 5000})
	if all := p.received("", 10); len(all) != 2 { // the control
		t.Fatalf("%+v", all)
	}
	p.clock.Add(2)
	bad := p.received("", 10)
	if !slices.Equal(bodies(bad), []string{`"bad"`}) {
		t.Fatalf("%+v", bad)
	}
	_, err := p.as(p.other, agents.MailAck.Name, api.MailAckParams{IDs: []string{bad[0].ID}, Reject: "cannot be read"})
	must(t, err)
	p.sent(api.MailSendParams{Body: json.RawMessage(`"good"`)})
	var dead []string
	must(t, p.engine.Read(func(tx *store.KernelTx) error {
		all, err := lease.Letters.Below(tx, "")
		for _, m := range all {
			dead = append(dead, string(m.Body)+" "+m.Dead)
		}
		box, berr := lease.Boxes.Get(tx, lease.RunBox(1000, p.other.Spec.ID).ID())
		if berr == nil && (box.Messages != 1 || box.Dead != 2) {
			t.Errorf("%+v", box)
		}
		return err
	}))
	if !slices.Equal(dead, []string{`"late" expired`, `"bad" rejected: cannot be read`}) {
		t.Errorf("%q", dead)
	}
	// A run that is removed leaves no mail.
	must(t, p.Happened(agent.RunEvent{Time: p.config.Clock(), Kind: agent.RunRemoved, ID: p.other.Spec.ID, Name: "critic", Owner: p.other.Owner}, ""))
	must(t, p.engine.Read(func(tx *store.KernelTx) error {
		for _, table := range []store.Table[lease.Message]{lease.Messages, lease.Letters} {
			if all, err := table.Below(tx, ""); err != nil || len(all) != 0 {
				t.Errorf("%d left in %s, %v", len(all), table.Bucket, err)
			}
		}
		return nil
	}))
}

// A question is answered once, by the run that has it and by no other, and the answer is found by it.
func TestQuestionsAndAnswers(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	plain := p.sent(api.MailSendParams{})
	asked := p.sent(api.MailSendParams{Asks: true, Trace: "t"})
	got := make(chan api.Mail, 1)
	go func() {
		text, err := p.asAgent(agents.MailAnswer.Name, api.MailAnswerParams{ID: asked.ID})
		var result api.MailAnswerResult
		if err == nil {
			err = json.Unmarshal(text, &result)
		}
		if err != nil {
			t.Error(err)
		}
		got <- result.Message
	}()
	for _, c := range []struct {
		by   agent.Run
		id   string
		code api.Code
	}{{p.other, plain.ID, api.CodeConflict}, {p.other, "nothing", api.CodeNotFound}, {p.run, asked.ID, api.CodeNotFound}} {
		_, err := p.as(c.by, agents.MailReply.Name, api.MailReplyParams{ID: c.id, Body: json.RawMessage(`1`)})
		wantCode(t, err, c.code)
	}
	var answered atomic.Int64
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			if _, err := p.as(p.other, agents.MailReply.Name, api.MailReplyParams{ID: asked.ID, Body: json.RawMessage(fmt.Sprint(i))}); err == nil {
				answered.Add(1)
			}
		})
	}
	all.Wait()
	m := <-got
	if answered.Load() != 1 || m.Answers != asked.ID || m.Trace != "t" || m.From != p.other.Spec.ID {
		t.Errorf("%d answers, %+v", answered.Load(), m)
	}
}

// A call that waits ends when its time is over, and is no refusal then. The control is one that gets an answer.
func TestAWaitHasAnEnd(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	asked := p.sent(api.MailSendParams{Asks: true})
	for method, params := range map[string]string{agents.MailAnswer.Name: `{"id":"` + asked.ID + `","within_ms":30}`, agents.MailReceive.Name: `{"within_ms":30}`} {
		_, err := p.asAgent(method, params)
		if wantCode(t, err, api.CodeNotFound); err != nil && api.ErrorOf(err).Data.Rule != api.RuleWithin {
			t.Errorf("%s: %v", method, err)
		}
		_, err = p.asAgent(method, strings.Replace(params, ":30}", ":-30}", 1))
		wantCode(t, err, api.CodeParams)
	}
	_, err := p.as(p.other, agents.MailReply.Name, api.MailReplyParams{ID: asked.ID, Body: json.RawMessage(`"yes"`)})
	must(t, err)
	_, err = p.asAgent(agents.MailAnswer.Name, `{"id":"`+asked.ID+`","within_ms":60000}`)
	must(t, err)
	for _, e := range p.entries() {
		if e.Rule == api.RuleWithin {
			t.Errorf("%+v", e)
		}
	}
}

// A message that the budget refuses is not there, also where the refusal ends the run and is noted.
func TestAMessageThatTheBudgetRefusesIsNotSent(t *testing.T) {
	t.Parallel()
	base := newRig(t, agent.Kernel{Grants: []string{"send:next"}, Budgets: []string{"messages=1"}})
	next := base.named(1000, "", "next")
	must(t, base.tell("next", `1`))
	wantCode(t, base.tell("next", `2`), api.CodeBudget)
	if all := next.inbox(); !slices.Equal(all, []string{`1`}) {
		t.Error(all)
	}
}
