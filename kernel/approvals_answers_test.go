package kernel

import (
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/audit"
)

// askingPeople is a rig whose run needs the yes of several users, of whom 2000 and 2001 may answer for all runs.
func askingPeople(t *testing.T, ask string) *rig {
	t.Helper()
	run := newRun(1000, agent.Kernel{Asks: []string{ask}})
	run.Spec.Network = agent.NetworkAllowlist
	return newRigOf(t, run)
}

func (r *rig) uses(id string) (api.Approval, error) {
	result, err := asks[api.ApprovalResult](r, 0, methods.ApprovalUse.Name, api.ApprovalUseParams{Run: r.run.Spec.ID, ID: id})
	return result.Approval, err
}

// A yes for one time makes no grant, and is used up by the one that asks for it, also where cloved was restarted between.
// Then it is asked again. The control is a yes without it.
func TestAYesForOneTime(t *testing.T) {
	t.Parallel()
	r := asking(t)
	standings := r.attach(false)
	<-standings
	asked, err := r.asksFor("api.example.com:443")
	must(t, err)
	if got, err := r.uses(asked.ID); err == nil {
		t.Errorf("before the answer: %+v", got)
	}
	given := yes(asked)
	given.Once, given.ForMS = true, 5
	_, err = r.responds(1000, given)
	wantCode(t, err, api.CodeParams) // one of both
	given.ForMS = 0
	got, err := r.responds(1000, given)
	if must(t, err); !got.Once || got.Grant != "" || got.State != api.ApprovalAllowed {
		t.Errorf("%+v", got)
	}
	r.close()
	r.open()
	if again, err := r.asksFor("api.example.com:443"); err != nil || again.ID != asked.ID || !again.Used.IsZero() {
		t.Errorf("before it is used: %+v, %v", again, err)
	}
	got, err = r.uses(asked.ID)
	if must(t, err); got.Used.IsZero() {
		t.Errorf("%+v", got)
	}
	r.close()
	r.open()
	_, err = r.uses(asked.ID)
	wantCode(t, err, api.CodeConflict)
	again, err := r.asksFor("api.example.com:443")
	if must(t, err); again.ID == asked.ID || again.State != api.ApprovalWaits {
		t.Errorf("behind its use: %+v", again)
	}
	_, err = r.responds(1000, yes(again)) // the control
	must(t, err)
	_, err = r.uses(again.ID)
	wantCode(t, err, api.CodeConflict)
	if last, err := r.asksFor("api.example.com:443"); err != nil || last.ID != again.ID || last.Grant == "" {
		t.Errorf("control: %+v, %v", last, err)
	}
	_, err = asks[api.ApprovalResult](r, 0, methods.ApprovalUse.Name, api.ApprovalUseParams{Run: "0123456789abcdef", ID: asked.ID})
	wantCode(t, err, api.CodeNotFound)
}

// Where two users must agree, one yes decides nothing, the same user does not count twice, and one no is a no. The narrowest
// of the answers holds. The control is a run where one is enough.
func TestSeveralUsersMustAgree(t *testing.T) {
	t.Parallel()
	r := askingPeople(t, "net=2")
	standings := r.attach(false)
	<-standings
	asked, err := r.asksFor("api.example.com:443")
	if must(t, err); asked.Needed != 2 {
		t.Fatalf("%+v", asked)
	}
	got, err := r.responds(1000, yes(asked))
	if must(t, err); got.State != api.ApprovalWaits || got.Grant != "" || len(got.Answers) != 1 {
		t.Errorf("after one: %+v", got)
	}
	_, err = r.responds(1000, yes(asked))
	wantCode(t, err, api.CodeConflict)
	r.close()
	r.open()
	standings = r.attach(false)
	<-standings
	given := yes(asked)
	given.ForMS = 60_000
	got, err = r.responds(2000, given)
	if must(t, err); got.State != api.ApprovalAllowed || got.Grant == "" || len(got.Answers) != 2 || got.Until.IsZero() {
		t.Errorf("after two: %+v", got)
	}
	if now := <-standings; len(now.Net) != 1 || !now.Net[0].Expires.Equal(got.Until) {
		t.Errorf("%+v", now)
	}
	refused, err := r.asksFor("b.example.com:443")
	must(t, err)
	_, err = r.responds(0, yes(refused))
	must(t, err)
	got, err = r.responds(2001, api.ApprovalRespondParams{ID: refused.ID, Digest: refused.Digest})
	if must(t, err); got.State != api.ApprovalDenied {
		t.Errorf("one yes and one no: %+v", got)
	}
	_, err = r.responds(1000, yes(refused))
	wantCode(t, err, api.CodeConflict)

	one := asking(t)
	asked, err = one.asksFor("api.example.com:443")
	must(t, err)
	if got, err := one.responds(1000, yes(asked)); err != nil || got.State != api.ApprovalAllowed || got.Needed != 0 {
		t.Errorf("control: %+v, %v", got, err)
	}
}

// A user of the configuration sees and answers questions of others' runs; another user does not.
func TestApproversSeeAllQuestions(t *testing.T) {
	t.Parallel()
	r := askingPeople(t, "net")
	asked, err := r.asksFor("api.example.com:443")
	must(t, err)
	for uid, want := range map[uint32]int{0: 1, 1000: 1, 2000: 1, 1001: 0} {
		all, err := asks[api.ApprovalListResult](r, uid, methods.ApprovalList.Name, api.ApprovalListParams{})
		if must(t, err); len(all.Approvals) != want {
			t.Errorf("user %d sees %d", uid, len(all.Approvals))
		}
		_, err = asks[api.ApprovalResult](r, uid, methods.ApprovalGet.Name, api.ApprovalGetParams{ID: asked.ID})
		if (err == nil) != (want == 1) {
			t.Errorf("user %d: %v", uid, err)
		}
	}
}

// The answer of a command counts as its owner's, once, and comes from the supervisor alone. A wrong proof is recorded, and
// the question waits on.
func TestTheAnswerOfACommand(t *testing.T) {
	t.Parallel()
	r := askingPeople(t, "net=2")
	asked, err := r.asksFor("api.example.com:443")
	must(t, err)
	brought := yes(asked)
	brought.Command = true
	_, err = r.responds(1000, brought)
	wantCode(t, err, api.CodeDenied)
	wrong := brought
	wrong.Fault = "its hmac is wrong"
	_, err = r.responds(0, wrong)
	wantCode(t, err, api.CodeDenied)
	got, err := r.responds(0, brought)
	if must(t, err); got.State != api.ApprovalWaits || got.Answers[0].UID != 1000 || !got.Answers[0].Command {
		t.Errorf("%+v", got)
	}
	for _, again := range []func() (api.Approval, error){
		func() (api.Approval, error) { return r.responds(0, brought) },
		func() (api.Approval, error) { return r.responds(1000, yes(asked)) },
	} {
		_, err = again()
		wantCode(t, err, api.CodeConflict)
	}
	if got, err := r.responds(0, yes(asked)); err != nil || got.State != api.ApprovalAllowed {
		t.Errorf("root, as the second: %+v, %v", got, err)
	}
	recorded := slices.ContainsFunc(r.entries(), func(e audit.Entry) bool {
		return e.Method == methods.ApprovalRespond.Name && e.Verdict == audit.VerdictDeny && e.Code == "denied"
	})
	if !recorded {
		t.Error("the wrong proof is not recorded")
	}
}

// A run whose questions need the yes of more users than there are does not start: no answer could let it go on. Root, its
// owner and two approvers are four.
func TestQuestionsThatCannotBeAnsweredAreRefused(t *testing.T) {
	t.Parallel()
	r := askingPeople(t, "net=4")
	run := newRun(1000, agent.Kernel{Asks: []string{"net=5"}})
	err := r.Attach(t.Context(), run, true, func(api.Standing) {})
	if f := api.ErrorOf(err); err == nil || f.Code != api.CodeDenied || !strings.Contains(f.Message, "--ask net=5: so many users have to say yes, and 4 may answer") {
		t.Errorf("%v", err)
	}
}
