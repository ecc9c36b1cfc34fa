package kernel

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/lease"
	"clove.run/clove/kernel/names"
	"clove.run/clove/store"
)

// A hidden thing is one of the holder's, an agent of user 1000 in the namespace acme: it is named by id in the
// parameters, in which absent stands in its place for one that there is not.
type hidden struct {
	what, method, params string // ID is where id or absent goes
	id, absent           string
	user                 bool // users call it, not agents
}

// holder is a rig whose run has one of everything, and what hides that from others.
func newHolder(t *testing.T) (*rig, []hidden) {
	p := newPost(t)
	has := agent.Kernel{Grants: []string{"send:*", "name:*", "state:/namespace:rw", "state:/name:rw", "tool:fetch"}, Budgets: []string{"reviews=1000"}, Namespace: "acme"}
	run := newRun(1000, has)
	run.Spec.Name = "holder"
	r := p.rig.as(run)
	ask := func(method, params string) json.RawMessage {
		t.Helper()
		text, err := r.asAgent(method, params)
		must(t, err)
		return text
	}
	long := `"` + strings.Repeat("0123456789abcdef", 2900) + `"` // what is decoded is seen in the time
	sent := answerOf[api.MailSendResult](t)(ask(agents.MailSend.Name, fmt.Sprintf(`{"to":%q,"body":%s,"asks":true}`, run.Spec.ID, long)), nil)
	event := answerOf[api.EventAppendResult](t)(ask(agents.EventAppend.Name, `{"kind":"agent.plan","body":`+long[:4000]+`"}`), nil).ID
	_, err := asks[api.QueueResult](r, 1000, methods.QueueAdd.Name, api.QueueAddParams{Name: "builds", Namespace: "acme"})
	must(t, err)
	job := answerOf[api.JobResult](t)(ask(agents.JobAdd.Name, `{"queue":"builds","body":`+long+`}`), nil).Job.ID
	ask(agents.JobClaim.Name, `{"queue":"builds"}`)
	for _, where := range []string{`"scope":"namespace"`, `"name":"counter"`} {
		ask(agents.StateSet.Name, `{`+where+`,"path":"plan","value":`+long+`}`)
	}
	content, digest := large(100_000, 7)
	p.uploaded(run, content)
	must(t, r.engine.Update("test", func(tx *store.KernelTx) error {
		for _, name := range []string{"critics", "topic/news"} {
			row := names.Row{Owner: 1000, Namespace: "acme", Name: name, Reserved: true, Holders: []names.Holder{{Run: run.Spec.ID}}}
			for len(row.Holders) < 64 {
				row.Holders = append(row.Holders, names.Holder{Run: agent.NewID(), Tags: slices.Repeat([]string{strings.Repeat("t", 60)}, 8)})
			}
			if err := names.Rows.Put(tx, &row); err != nil {
				return err
			}
		}
		dead := &lease.Message{Mail: api.Mail{Body: json.RawMessage(long)}}
		if err := lease.Put(tx, lease.RunBox(1000, run.Spec.ID), dead); err != nil {
			return err
		}
		_, err := lease.Take(tx, lease.RunBox(1000, run.Spec.ID), dead.ID)
		must(t, err)
		return lease.Bury(tx, lease.RunBox(1000, run.Spec.ID), dead, "expired", time.Now())
	}))
	letters, err := asks[api.MailDeadResult](r, 1000, methods.MailDead.Name, api.MailDeadParams{})
	must(t, err)
	letter := letters.Letters[0].Letter
	r.named(1000, "acme", "reader")
	offer := answerOf[api.HandoffResult](t)(ask(agents.AgentHandoff.Name, `{"to":"reader","task":`+long+`}`), nil).Offer
	given, reserved := r.grants()["tool:fetch"].ID, r.reserve("reviews", 1)
	last := func(id string) string {
		return id[:len(id)-1] + string("123456789abcdef0"[strings.IndexByte("0123456789abcdef", id[len(id)-1])])
	}
	_, none := large(10, 9)
	const nobody = "0123456789abcdef"
	all := []hidden{
		{what: "the name of a run", method: agents.MailSend.Name, params: `{"to":"ID","body":1}`, id: "holder", absent: "holdex"},
		{what: "the id of a run", method: agents.MailSend.Name, params: `{"to":"ID","body":1}`, id: string(run.Spec.ID), absent: nobody},
		{what: "the receiver of a task", method: agents.AgentHandoff.Name, params: `{"to":"ID","task":1}`, id: "holder", absent: "holdex"},
		{what: "a registered name", method: agents.MailSend.Name, params: `{"to":"ID","body":1}`, id: "critics", absent: "critixs"},
		{what: "a registered name", method: agents.NameLookup.Name, params: `{"name":"ID"}`, id: "critics", absent: "critixs"},
		{what: "a registered name", method: agents.NameRelease.Name, params: `{"name":"ID"}`, id: "critics", absent: "critixs"},
		{what: "names by a prefix", method: agents.NameList.Name, params: `{"prefix":"ID"}`, id: "critics", absent: "critixs"},
		{what: "a topic", method: agents.MailPublish.Name, params: `{"topic":"ID","body":1,"trace":"t"}`, id: "news", absent: "newx"},
		{what: "a topic", method: agents.MailUnsubscribe.Name, params: `{"topic":"ID"}`, id: "news", absent: "newx"},
		{what: "a message", method: agents.MailAck.Name, params: `{"ids":["ID"]}`, id: sent.ID, absent: last(sent.ID)},
		{what: "a message", method: agents.MailReply.Name, params: `{"id":"ID","body":1}`, id: sent.ID, absent: last(sent.ID)},
		{what: "a message", method: agents.EventTrace.Name, params: `{"id":"ID"}`, id: sent.ID, absent: last(sent.ID)},
		{what: "an event", method: agents.EventTrace.Name, params: `{"id":"ID"}`, id: event, absent: nobody},
		{what: "an event", method: agents.EventAppend.Name, params: `{"kind":"agent.x","causation":"ID"}`, id: event, absent: nobody},
		{what: "a call", method: agents.EventTrace.Name, params: `{"id":"ID"}`, id: sent.Trace, absent: nobody},
		{what: "a run", method: agents.EventTrace.Name, params: `{"id":"ID"}`, id: string(run.Spec.ID), absent: nobody},
		{what: "a job", method: agents.JobGet.Name, params: `{"id":"ID"}`, id: job, absent: last(job)},
		{what: "a job", method: agents.JobRenew.Name, params: `{"id":"ID"}`, id: job, absent: last(job)},
		{what: "a job", method: agents.JobComplete.Name, params: `{"id":"ID"}`, id: job, absent: last(job)},
		{what: "a job", method: agents.JobFail.Name, params: `{"id":"ID","why":"x"}`, id: job, absent: last(job)},
		{what: "a queue", method: agents.JobAdd.Name, params: `{"queue":"ID","body":1}`, id: "builds", absent: "buildx"},
		{what: "a queue", method: agents.JobClaim.Name, params: `{"queue":"ID","within_ms":1}`, id: "builds", absent: "buildx"},
		{what: "a key of the namespace", method: agents.StateGet.Name, params: `{"scope":"namespace","path":"ID"}`, id: "plan", absent: "plax"},
		{what: "a key of the namespace", method: agents.StateDelete.Name, params: `{"scope":"namespace","path":"ID"}`, id: "plan", absent: "plax"},
		{what: "keys of the namespace", method: agents.StateList.Name, params: `{"scope":"namespace","path":"ID"}`, id: "plan", absent: "plax"},
		{what: "a key of a name", method: agents.StateGet.Name, params: `{"name":"ID","path":"plan"}`, id: "counter", absent: "countex"},
		{what: "a blob", method: agents.BlobRead.Name, params: `{"blob":"ID"}`, id: digest, absent: none},
		{what: "a blob", method: agents.StateSet.Name, params: `{"path":"a","blob":"ID"}`, id: digest, absent: none},
		{what: "a grant", method: agents.GrantRevoke.Name, params: `{"id":"ID"}`, id: given, absent: nobody},
		{what: "a grant", method: agents.GrantDerive.Name, params: `{"from":"ID","grant":"tool:fetch"}`, id: given, absent: nobody},
		{what: "a reservation", method: agents.BudgetRelease.Name, params: `{"reservation":"ID"}`, id: reserved, absent: nobody},
		{what: "an offer", method: agents.AgentAccept.Name, params: `{"offer":"ID"}`, id: offer, absent: nobody},
		{what: "an offer", method: agents.AgentWithdraw.Name, params: `{"offer":"ID"}`, id: offer, absent: nobody},
		{user: true, what: "a job", method: methods.JobsShow.Name, params: `{"id":"ID"}`, id: job, absent: last(job)},
		{user: true, what: "a job", method: methods.JobsCancel.Name, params: `{"id":"ID"}`, id: job, absent: last(job)},
		{user: true, what: "a queue", method: methods.JobsAdd.Name, params: `{"queue":"ID","namespace":"acme","body":1}`, id: "builds", absent: "buildx"},
		{user: true, what: "a dead letter", method: methods.MailRequeue.Name, params: `{"id":"ID"}`, id: letter, absent: last(letter)},
		{user: true, what: "a mailbox", method: methods.MailRead.Name, params: `{"mailbox":"ID"}`, id: "holder", absent: "holdex"},
		{user: true, what: "a name", method: methods.NameRemove.Name, params: `{"name":"ID","namespace":"acme"}`, id: "critics", absent: "critixs"},
		{user: true, what: "a key", method: methods.StateRead.Name, params: `{"namespace":"acme","path":"ID"}`, id: "plan", absent: "plax"},
		{user: true, what: "a blob", method: methods.BlobFetch.Name, params: `{"blob":"ID"}`, id: digest, absent: none},
		{user: true, what: "a message", method: methods.AuditTrace.Name, params: `{"id":"ID"}`, id: sent.ID, absent: last(sent.ID)},
		{user: true, what: "a call", method: methods.AuditTrace.Name, params: `{"id":"ID"}`, id: sent.Trace, absent: nobody},
	}
	question, err := r.asksFor("api.example.com:443")
	must(t, err)
	answer := `,"digest":"` + question.Digest + `","allow":true}`
	all = append(all,
		hidden{what: "a question", method: agents.ApprovalCancel.Name, params: `{"id":"ID"}`, id: question.ID, absent: last(question.ID)},
		hidden{user: true, what: "a question", method: methods.ApprovalGet.Name, params: `{"id":"ID"}`, id: question.ID, absent: last(question.ID)},
		hidden{user: true, what: "a question by its beginning", method: methods.ApprovalGet.Name, params: `{"id":"ID"}`, id: question.ID[:15], absent: last(question.ID[:15])},
		hidden{user: true, what: "an answered question", method: methods.ApprovalGet.Name, params: `{"id":"ID","answered":true}`, id: question.ID, absent: last(question.ID)},
		hidden{user: true, what: "questions of a run", method: methods.ApprovalList.Name, params: `{"run":"ID"}`, id: string(run.Spec.ID), absent: nobody},
		hidden{user: true, what: "a question", method: methods.ApprovalRespond.Name, params: `{"run":"RUN","id":"ID"` + answer, id: question.ID, absent: last(question.ID)})
	return r, all
}

// asked is what one of them answers, and how long that takes.
func (h hidden) asked(by *rig, id string) (answer string, took time.Duration) {
	params := strings.ReplaceAll(strings.ReplaceAll(h.params, "RUN", string(by.run.Spec.ID)), "ID", id)
	began := time.Now()
	var text json.RawMessage
	var err error
	if h.user {
		text, err = asks[json.RawMessage](by, by.run.Owner.UID, h.method, params)
	} else {
		text, err = by.asAgent(h.method, params)
	}
	took = time.Since(began)
	if err != nil {
		e := api.ErrorOf(err)
		answer = fmt.Sprintf("%d %s %+v", e.Code, e.Message, e.Data)
	}
	return strings.ReplaceAll(string(text)+answer, id, "ID"), took
}

// What belongs to another namespace or owner is answered as what does not exist. That it takes the same time, a test of the
// lane alone measures.
func TestWhatIsHiddenIsAMiss(t *testing.T) {
	t.Parallel()
	r, all := newHolder(t)
	for name, other := range strangers(r) {
		for _, h := range all {
			if h.user && name != "another owner" {
				continue
			}
			got, _ := h.asked(other, h.id)
			want, _ := h.asked(other, h.absent)
			if got != want {
				t.Errorf("%s, %s of %s: %q, and of none %q", name, h.method, h.what, got, want)
			}
		}
	}
}

// strangers are runs to which what the holder has is hidden.
func strangers(r *rig) map[string]*rig {
	has := r.run.Spec.Kernel
	has.Grants = append(slices.Clone(has.Grants), "send:job/*", "name:job/*")
	others := map[string]*rig{}
	for name, of := range map[string]struct {
		uid       uint32
		namespace string
	}{"another namespace": {1000, "other"}, "a namespace below": {1000, "acme/below"}, "the namespace above": {1000, ""}, "another owner": {1001, "acme"}} {
		has.Namespace = of.namespace
		run := newRun(of.uid, has)
		run.Spec.Name = strings.ReplaceAll(name, " ", "-")
		others[name] = r.as(run)
	}
	return others
}
