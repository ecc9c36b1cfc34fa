package kernel

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/service"
)

// asking is a rig whose run asks people about its network.
func asking(t *testing.T) *rig {
	t.Helper()
	run := newRun(1000, agent.Kernel{Asks: []string{agent.AskNet}})
	run.Spec.Network = agent.NetworkAllowlist
	r := newRigOf(t, run)
	return r
}

// asks asks about a target, as the run's supervisor does.
func (r *rig) asksFor(target string) (api.Approval, error) {
	result, err := asks[api.ApprovalResult](r, 0, methods.ApprovalAsk.Name, api.ApprovalAskParams{Run: r.run.Spec.ID, Kind: api.ApproveNet, What: "connect to " + target, Rule: target})
	return result.Approval, err
}

// responds answers as a user.
func (r *rig) responds(uid uint32, p api.ApprovalRespondParams) (api.Approval, error) {
	p.Run = string(r.run.Spec.ID)
	text, err := r.Call(context.Background(), service.Caller{Run: r.run, UID: uid}, service.Request{Method: methods.ApprovalRespond.Name, Text: encode(p)})
	var result api.ApprovalResult
	if err == nil {
		err = json.Unmarshal(text, &result)
	}
	return result.Approval, err
}

func yes(a api.Approval) api.ApprovalRespondParams {
	return api.ApprovalRespondParams{ID: a.ID, Digest: a.Digest, Allow: true}
}

// A yes gives the run a net grant for exactly what was asked, and ends the wait. The log has both sides.
func TestAYesIsANetGrant(t *testing.T) {
	t.Parallel()
	r := asking(t)
	standings := r.attach(false)
	<-standings
	asked, err := r.asksFor("api.example.com:443")
	must(t, err)
	again, err := r.asksFor("api.example.com:443")
	if must(t, err); again.ID != asked.ID || asked.State != api.ApprovalWaits {
		t.Fatalf("%+v, then %+v", asked, again)
	}
	answered := make(chan api.Approval, 1)
	go func() {
		result, err := asks[api.ApprovalResult](r, 0, methods.ApprovalGet.Name, api.ApprovalGetParams{ID: asked.ID, Answered: true})
		if err != nil {
			t.Error(err)
		}
		answered <- result.Approval
	}()
	given := yes(asked)
	given.ForMS = 60_000
	_, err = r.responds(1000, given)
	must(t, err)
	got := <-answered
	if now := <-standings; got.State != api.ApprovalAllowed || got.Grant == "" || len(now.Net) != 1 || now.Net[0].Source != "grant "+got.Grant || now.Net[0].Target != "api.example.com:443" || !now.Net[0].Expires.Equal(got.Until) {
		t.Errorf("%+v, %+v", got, now)
	}
	_, err = r.responds(1000, given)
	wantCode(t, err, api.CodeConflict) // it is answered once
	if again, err = r.asksFor("api.example.com:443"); err != nil || again.State != api.ApprovalAllowed {
		t.Errorf("%+v, %v", again, err)
	}
	r.clock.Add(61)
	if again, err = r.asksFor("api.example.com:443"); err != nil || again.State != api.ApprovalWaits || again.ID == asked.ID {
		t.Errorf("behind its time: %+v, %v", again, err)
	}
	var log []string
	for _, e := range r.entries() {
		if e.Method == methods.ApprovalAsk.Name || e.Method == methods.ApprovalRespond.Name && e.Verdict == audit.VerdictAllow {
			log = append(log, fmt.Sprint(e.Method, " ", e.Principal, " ", e.What))
		}
	}
	want := []string{"approval.ask uid:0 connect to api.example.com:443", "approval.ask uid:0 connect to api.example.com:443", "approval.respond uid:1000 connect to api.example.com:443"}
	if !slices.Equal(log[:3], want) {
		t.Errorf("%q", log)
	}
}

// An answer is for what was seen, by a user who may allow it, in time, and never by an agent. The control is an answer
// that is taken.
func TestAnAnswerIsForWhatWasSeen(t *testing.T) {
	t.Parallel()
	r := asking(t)
	asked, err := r.asksFor("api.example.com:443")
	must(t, err)
	run := newRun(1000, agent.Kernel{Asks: []string{agent.AskNet}})
	run.Spec.Name, run.Spec.Network = "other", agent.NetworkAllowlist
	other := r.as(run)
	far, err := other.asksFor("api.example.com:443")
	must(t, err)
	if far.Digest == asked.Digest {
		t.Error("two questions have one digest")
	}
	for what, p := range map[string]api.ApprovalRespondParams{
		"another digest":  {ID: asked.ID, Digest: far.Digest, Allow: true},
		"no digest":       {ID: asked.ID, Allow: true},
		"another run's":   {ID: far.ID, Digest: far.Digest, Allow: true},
		"a guess":         {ID: strings.Repeat("0", 16), Digest: asked.Digest, Allow: true},
		"a negative time": {ID: asked.ID, Digest: asked.Digest, Allow: true, ForMS: -1},
	} {
		if got, err := r.responds(1000, p); err == nil {
			t.Errorf("%s: %+v", what, got)
		}
	}
	for _, method := range []string{methods.ApprovalRespond.Name, methods.ApprovalAsk.Name, methods.ApprovalGet.Name, methods.ApprovalList.Name} {
		_, err = r.asAgent(method, yes(asked))
		wantCode(t, err, api.CodeMethod)
	}
	for _, uid := range []uint32{1001} {
		_, err := asks[api.ApprovalResult](r, uid, methods.ApprovalGet.Name, api.ApprovalGetParams{ID: asked.ID})
		wantCode(t, err, api.CodeNotFound)
		all, err := asks[api.ApprovalListResult](r, uid, methods.ApprovalList.Name, api.ApprovalListParams{})
		if must(t, err); len(all.Approvals) != 0 {
			t.Errorf("user %d sees %+v", uid, all)
		}
	}
	_, err = r.asksFor("forbidden.example")
	if err == nil { // it is refused without a question
		t.Error("what the owner may not allow is asked")
	}
	if got, err := other.responds(1000, yes(far)); err != nil || got.State != api.ApprovalAllowed {
		t.Errorf("control: %+v, %v", got, err)
	}
	r.clock.Add(3601)
	if got, err := r.responds(1000, yes(asked)); err == nil {
		t.Errorf("behind its time: %+v", got)
	}
	r.alarm.set(r.engine.Now())
	result, err := asks[api.ApprovalResult](r, 1000, methods.ApprovalGet.Name, api.ApprovalGetParams{ID: asked.ID, Answered: true})
	if must(t, err); result.Approval.State != api.ApprovalExpired {
		t.Errorf("%+v", result)
	}
}

// A no holds for the run: it is not asked twice. A run that ends takes its questions with it, and one that asks in a flood
// has an end.
func TestQuestionsAreBounded(t *testing.T) {
	t.Parallel()
	r := asking(t)
	refused, err := r.asksFor("no.example.com:443")
	must(t, err)
	_, err = r.responds(1000, api.ApprovalRespondParams{ID: refused.ID, Digest: refused.Digest, Reason: "never"})
	must(t, err)
	if again, err := r.asksFor("no.example.com:443"); err != nil || again.ID != refused.ID || again.State != api.ApprovalDenied || again.Answers[0].Reason != "never" {
		t.Errorf("%+v, %v", again, err)
	}
	waiting := 0
	for i := range 100 {
		if _, err := r.asksFor(fmt.Sprintf("h%d.example.com:443", i)); err == nil {
			waiting++
		} else {
			wantCode(t, err, api.CodeBusy)
		}
	}
	if waiting != 32 {
		t.Errorf("%d wait", waiting)
	}
	own := answerOf[api.ApprovalListResult](t)(r.asAgent(agents.ApprovalOwn.Name, api.ApprovalOwnParams{}))
	at := slices.IndexFunc(own.Approvals, func(a api.Approval) bool { return a.State == api.ApprovalWaits })
	_, err = r.asAgent(agents.ApprovalCancel.Name, api.ApprovalCancelParams{ID: own.Approvals[at].ID})
	must(t, err)
	if got, err := r.responds(1000, yes(own.Approvals[at])); err == nil {
		t.Errorf("what was taken back is answered: %+v", got)
	}
	r.clock.Add(1)
	r.ended(agent.RunEnded)
	all, err := asks[api.ApprovalListResult](r, 1000, methods.ApprovalList.Name, api.ApprovalListParams{State: api.ApprovalWaits})
	if must(t, err); len(all.Approvals) != 0 {
		t.Errorf("%d wait behind the end", len(all.Approvals))
	}
}

// A question and its answer survive a restart.
func TestQuestionsSurviveARestart(t *testing.T) {
	t.Parallel()
	r := asking(t)
	asked, err := r.asksFor("api.example.com:443")
	must(t, err)
	r.close()
	r.open()
	standings := r.attach(false)
	<-standings
	_, err = r.responds(1000, yes(asked))
	must(t, err)
	if now := <-standings; len(now.Net) != 1 {
		t.Errorf("%+v", now)
	}
	r.close()
	r.open()
	if again, err := r.asksFor("api.example.com:443"); err != nil || again.ID != asked.ID || again.State != api.ApprovalAllowed {
		t.Errorf("%+v, %v", again, err)
	}
}
