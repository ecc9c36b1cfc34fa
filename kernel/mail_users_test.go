package kernel

import (
	"encoding/json"
	"slices"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/lease"
)

// A user sees the mailboxes of its own runs and names and what is in them, and root all; for others there
// are none.
func TestUsersReadTheirMail(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	p.sent(api.MailSendParams{Body: json.RawMessage(`"first"`)})
	p.sent(api.MailSendParams{Body: json.RawMessage(`"second"`), Priority: 9})
	_, err := asks[api.NameResult](p.rig, 1000, methods.NameReserve.Name, api.NameReserveParams{Name: "gone", Namespace: "acme"})
	must(t, err)
	_, err = asks[api.MailSendResult](p.rig, 1000, methods.MailPost.Name, api.MailPostParams{To: "gone", Namespace: "acme", Body: json.RawMessage(`"kept"`)})
	must(t, err)
	for by, want := range map[uint32]int{0: 2, 1000: 2, 2000: 0} {
		all, err := asks[api.MailBoxesResult](p.rig, by, methods.MailBoxes.Name, api.MailBoxesParams{})
		if must(t, err); len(all.Mailboxes) != want {
			t.Errorf("user %d sees %+v", by, all)
		}
		for _, b := range all.Mailboxes {
			if b.Kind == "run" && (b.Name != "critic" || b.Run != p.other.Spec.ID || b.Messages != 2) || b.Kind == "name" && (b.Namespace != "acme" || b.Messages != 1) {
				t.Errorf("%+v", b)
			}
		}
		for _, reference := range []string{"critic", string(p.other.Spec.ID), lease.RunBox(1000, p.other.Spec.ID).ID()} {
			mail, err := asks[api.MailReadResult](p.rig, by, methods.MailRead.Name, api.MailReadParams{Mailbox: reference})
			if want == 0 {
				wantCode(t, err, api.CodeNotFound)
			} else if must(t, err); !slices.Equal(bodies(mail.Messages), []string{`"second"`, `"first"`}) {
				t.Errorf("%+v", mail)
			}
		}
	}
	uid := uint32(1000)
	_, err = asks[api.MailBoxesResult](p.rig, 2000, methods.MailBoxes.Name, api.MailBoxesParams{Owner: &uid})
	wantCode(t, err, api.CodeDenied)
}

// A user's message has the user as its sender, which no parameter changes, and reaches no other user's run.
func TestUsersSendMail(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	uid := uint32(1000)
	_, err := asks[api.MailSendResult](p.rig, 2000, methods.MailPost.Name, api.MailPostParams{To: "critic", Body: json.RawMessage(`1`)})
	wantCode(t, err, api.CodeNotFound)
	_, err = asks[api.MailSendResult](p.rig, 2000, methods.MailPost.Name, api.MailPostParams{To: "critic", Owner: &uid, Body: json.RawMessage(`1`)})
	wantCode(t, err, api.CodeDenied)
	_, err = asks[api.MailSendResult](p.rig, 1000, methods.MailPost.Name, `{"to":"critic","body":1,"sender":"uid:0"}`)
	wantCode(t, err, api.CodeParams)
	_, err = asks[api.MailSendResult](p.rig, 1000, methods.MailPost.Name, api.MailPostParams{To: "critic", Body: json.RawMessage(`"mine"`)})
	must(t, err)
	_, err = asks[api.MailSendResult](p.rig, 0, methods.MailPost.Name, api.MailPostParams{To: "critic", Owner: &uid, Body: json.RawMessage(`"root's"`)})
	must(t, err)
	all := p.received("", 10)
	if len(all) != 2 || all[0].Sender != "uid:1000" || all[0].From != "" || all[1].Sender != "uid:0" {
		t.Errorf("%+v", all)
	}
}

// A user puts its dead letters back at their places, or discards them. Other users have none.
func TestUsersOfDeadLetters(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	for _, body := range []string{`1`, `2`, `3`} {
		p.sent(api.MailSendParams{Body: json.RawMessage(body), ExpiresMS: 5000})
	}
	all := p.received("", 10)
	_, err := p.as(p.other, agents.MailAck.Name, api.MailAckParams{IDs: []string{all[0].ID, all[2].ID}, Reject: "no"})
	must(t, err)
	p.clock.Add(10)
	must(t, p.expireMail())
	p.sent(api.MailSendParams{Body: json.RawMessage(`4`)})
	letters, err := asks[api.MailDeadResult](p.rig, 1000, methods.MailDead.Name, api.MailDeadParams{Mailbox: "critic"})
	must(t, err)
	if n := len(letters.Letters); n != 3 || letters.Letters[0].Why != "rejected: no" || letters.Letters[1].Why != "expired" {
		t.Fatalf("%+v", letters)
	}
	others, err := asks[api.MailDeadResult](p.rig, 2000, methods.MailDead.Name, api.MailDeadParams{})
	if must(t, err); len(others.Letters) != 0 {
		t.Errorf("%+v", others)
	}
	for i, method := range []string{methods.MailRequeue.Name, methods.MailRequeue.Name, methods.MailDiscard.Name} {
		id := letters.Letters[i].ID
		_, err := asks[api.Nothing](p.rig, 2000, method, api.MailLetterParams{ID: id})
		wantCode(t, err, api.CodeNotFound)
		_, err = asks[api.Nothing](p.rig, 1000, method, api.MailLetterParams{ID: id})
		must(t, err)
		_, err = asks[api.Nothing](p.rig, 1000, method, api.MailLetterParams{ID: id})
		wantCode(t, err, api.CodeNotFound)
	}
	if all := p.received("", 10); !slices.Equal(bodies(all), []string{"1", "2", "4"}) {
		t.Errorf("%+v", all)
	}
}

// A dead letter of a name goes to a run that holds it.
func TestALetterOfANameGoesToItsHolder(t *testing.T) {
	t.Parallel()
	sender := newRig(t, agent.Kernel{Grants: []string{"send:critic"}})
	_, err := asks[api.NameResult](sender, 1000, methods.NameReserve.Name, api.NameReserveParams{Name: "critic"})
	must(t, err)
	_, err = sender.asAgent(agents.MailSend.Name, api.MailSendParams{To: "critic", Body: json.RawMessage(`1`), ExpiresMS: 1000})
	must(t, err)
	must(t, sender.expireMail()) // the control: it has not expired
	must(t, sender.tell("critic", `2`))
	if letters, err := asks[api.MailDeadResult](sender, 1000, methods.MailDead.Name, api.MailDeadParams{}); err != nil || len(letters.Letters) != 0 {
		t.Fatalf("%+v, %v", letters, err)
	}
	sender.clock.Add(2)
	must(t, sender.expireMail())
	one := sender.named(1000, "", "one")
	_, err = one.register("critic")
	must(t, err)
	letters, err := asks[api.MailDeadResult](sender, 1000, methods.MailDead.Name, api.MailDeadParams{})
	if must(t, err); len(letters.Letters) != 1 {
		t.Fatalf("%+v", letters)
	}
	_, err = asks[api.Nothing](sender, 1000, methods.MailRequeue.Name, api.MailLetterParams{ID: letters.Letters[0].ID})
	must(t, err)
	if all := one.inbox(); !slices.Equal(all, []string{"2", "1"}) {
		t.Error(all)
	}
}
