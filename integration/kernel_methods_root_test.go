//go:build root

package integration

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
)

// sent are sound parameters of each method for agents. GRANT and RESERVATION are the agent's own.
var sent = map[string]string{
	agents.AgentReady.Name:      `{}`,
	agents.AgentCollect.Name:    `{"child":"none","path":"/workspace/from-child"}`,
	agents.AgentApply.Name:      `{"key":"apply"}`,
	agents.ToolList.Name:        `{}`,
	agents.ToolCall.Name:        `{"tool":"echo","arguments":{"text":"a"}}`,
	agents.AgentFetch.Name:      `{"keeper":"none","from":"/memory","path":"/workspace/fetched"}`,
	agents.AgentSpawn.Name:      `{"manifest":"none"}`,
	agents.AgentWait.Name:       `{"child":"none"}`,
	agents.AgentSignal.Name:     `{"child":"none","signal":"USR1"}`,
	agents.AgentList.Name:       `{}`,
	agents.AgentTree.Name:       `{}`,
	agents.AgentResult.Name:     `{"result":{"found":3}}`,
	agents.AgentGet.Name:        `{}`,
	agents.AgentListen.Name:     `{}`,
	agents.AgentOffers.Name:     `{}`,
	agents.MailSend.Name:        `{"to":"none","body":1}`,
	agents.MailReceive.Name:     `{"most":65}`,
	agents.MailAck.Name:         `{"ids":["none"]}`,
	agents.MailReply.Name:       `{"id":"none","body":1}`,
	agents.MailAnswer.Name:      `{"id":"none"}`,
	agents.MailSubscribe.Name:   `{"topic":"none"}`,
	agents.MailUnsubscribe.Name: `{"topic":"none"}`,
	agents.MailPublish.Name:     `{"topic":"none","body":1}`,
	agents.NameRegister.Name:    `{"name":"none"}`,
	agents.NameRelease.Name:     `{"name":"none"}`,
	agents.NameLookup.Name:      `{"name":"none"}`,
	agents.NameList.Name:        `{}`,
	agents.JobAdd.Name:          `{"queue":"none","body":1}`,
	agents.JobClaim.Name:        `{"queue":"none"}`,
	agents.JobRenew.Name:        `{"id":"none"}`,
	agents.JobComplete.Name:     `{"id":"none"}`,
	agents.JobFail.Name:         `{"id":"none","why":"it is a test"}`,
	agents.JobGet.Name:          `{"id":"none"}`,
	agents.JobList.Name:         `{}`,
	agents.QueueOpen.Name:       `{"queue":"none"}`,
	agents.QueueClose.Name:      `{"queue":"none"}`,
	agents.AgentHandoff.Name:    `{"to":"0123456789abcdef","task":"review"}`,
	agents.AgentAccept.Name:     `{"offer":"none"}`,
	agents.AgentWithdraw.Name:   `{"offer":"none"}`,
	agents.GrantList.Name:       `{}`,
	agents.GrantCheck.Name:      `{"what":"tool:fetch"}`,
	agents.GrantDerive.Name:     `{"from":"GRANT","grant":"tool:fetch"}`,
	agents.GrantRevoke.Name:     `{"id":"DERIVED"}`,
	agents.BudgetGet.Name:       `{}`,
	agents.BudgetReserve.Name:   `{"amounts":{"reviews":1}}`,
	agents.BudgetSettle.Name:    `{"reservation":"RESERVATION","amounts":{"reviews":1}}`,
	agents.BudgetRelease.Name:   `{"reservation":"RESERVATION"}`,
	agents.BudgetCharge.Name:    `{"amounts":{"reviews":1}}`,
	agents.ApprovalOwn.Name:     `{}`,
	agents.ApprovalCancel.Name:  `{"id":"none"}`,
	agents.StateGet.Name:        `{"path":"plans/today"}`,
	agents.StateSet.Name:        `{"path":"plans/today","value":1,"if_version":0}`,
	agents.StateDelete.Name:     `{"path":"plans/today"}`,
	agents.StateList.Name:       `{}`,
	agents.StateWatch.Name:      `{"path":"plans/today","version":1}`,
	agents.BlobOpen.Name:        `{"bytes":1}`,
	agents.BlobWrite.Name:       `{"upload":"none","offset":0,"data":"YQ=="}`,
	agents.BlobClose.Name:       `{"upload":"none"}`,
	agents.BlobTake.Name:        `{"path":"/none"}`,
	agents.BlobRead.Name:        `{"blob":"none"}`,
	agents.BlobSave.Name:        `{"blob":"none","path":"/none"}`,
	agents.ModelQueue.Name:      `{}`,
	agents.AuditRead.Name:       `{"namespace":"acme"}`,
	agents.EventAppend.Name:     `{"kind":"agent.step","body":1}`,
	agents.EventTrace.Name:      `{"id":"0123456789abcdef"}`,
}

// needAnother are methods that a run without another, or without cloved, has no use for.
var needAnother = []string{agents.AgentHandoff.Name, agents.AgentAccept.Name, agents.AgentWithdraw.Name, agents.AgentWait.Name, agents.AgentSignal.Name, agents.AgentCollect.Name, agents.AgentFetch.Name, agents.AgentApply.Name, agents.AgentSpawn.Name, agents.MailSend.Name,
	agents.MailReceive.Name, agents.MailAck.Name, agents.MailReply.Name, agents.MailAnswer.Name, agents.NameRegister.Name, agents.NameRelease.Name, agents.NameLookup.Name,
	agents.EventTrace.Name, agents.MailSubscribe.Name, agents.MailUnsubscribe.Name, agents.MailPublish.Name,
	agents.JobAdd.Name, agents.JobClaim.Name, agents.JobRenew.Name, agents.JobComplete.Name, agents.JobFail.Name, agents.JobGet.Name, agents.ApprovalCancel.Name, agents.QueueOpen.Name, agents.QueueClose.Name,
	agents.BlobOpen.Name, agents.BlobWrite.Name, agents.BlobClose.Name, agents.BlobTake.Name, agents.BlobRead.Name, agents.BlobSave.Name}

// namedIn fills in what a call names: each is made for it.
func (r *running) namedIn(params string) string {
	r.h.t.Helper()
	text := func(method, params, field string) string {
		m := r.call(method, params)
		var all map[string]json.RawMessage
		if json.Unmarshal(m.Result, &all) != nil {
			r.h.t.Fatalf("%s: %s", method, m.Error)
		}
		return strings.Trim(string(all[field]), `"`)
	}
	if before, after, found := strings.Cut(params, "RESERVATION"); found {
		params = before + text(agents.BudgetReserve.Name, sent[agents.BudgetReserve.Name], "reservation") + after
	}
	var held api.GrantCheckResult
	_ = json.Unmarshal(r.call(agents.GrantCheck.Name, sent[agents.GrantCheck.Name]).Result, &held)
	if strings.Contains(params, "DERIVED") {
		var made api.GrantResult
		_ = json.Unmarshal(r.call(agents.GrantDerive.Name, `{"from":"`+held.Grant+`","grant":"tool:fetch"}`).Result, &made)
		params = strings.Replace(params, "DERIVED", made.Grant.ID, 1)
	}
	return strings.Replace(params, "GRANT", held.Grant, 1)
}

// Every method of the table that is for agents is answered over a real sandbox's socket, with a
// result of the table's type and no other; every other method is none there. Each is sent with a
// parameter that it does not have too: that is a mistake of the caller's, and no missing method.
func TestEveryMethodForAgentsIsAnswered(t *testing.T) {
	for name, newOne := range map[string]func(*testing.T) *host{
		"without cloved": newHost,
		"with cloved":    func(t *testing.T) *host { return newCloved(t).host },
	} {
		t.Run(name, func(t *testing.T) {
			r := newOne(t).calls("--grant=tool:fetch", "--grant=tool:echo", "--grant=audit:acme", "--budget=reviews=100", "--on-denial=deny")
			listens, _ := methods.Find(agents.AgentListen.Name)
			// Last: from then on notifications come between the answers.
			for _, m := range append(slices.DeleteFunc(slices.Clone(methods.All()), func(m api.Method) bool { return m.Name == listens.Name }), listens) {
				params, there := sent[m.Name]
				if !m.ForAgents() {
					if m.Name != api.MethodCancel && !refusedWith(r.call(m.Name, `{}`), api.CodeMethod) {
						t.Errorf("an agent may call %s", m.Name)
					}
					continue
				}
				if !there {
					t.Errorf("%s has no parameters in this test", m.Name)
					continue
				}
				if !refusedWith(r.call(m.Name, `{"nonsense":1}`), api.CodeParams) {
					t.Errorf("%s takes nonsense", m.Name)
				}
				answer := r.call(m.Name, r.namedIn(params))
				if slices.Contains(needAnother, m.Name) && slices.ContainsFunc([]api.Code{api.CodeNotFound, api.CodeDenied, api.CodeParams, api.CodeUnenforceable, api.CodeConflict}, func(code api.Code) bool { return refusedWith(answer, code) }) {
					continue
				}
				result := reflect.New(reflect.TypeOf(m.Result)).Interface()
				decoder := json.NewDecoder(bytes.NewReader(answer.Result))
				decoder.DisallowUnknownFields()
				if len(answer.Error) > 0 || decoder.Decode(result) != nil {
					t.Errorf("%s: %s %s", m.Name, answer.Result, answer.Error)
				}
			}
			r.wait()
		})
	}
}
