package service

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"clove.run/clove/api"
	"clove.run/clove/audit"
)

// put begins a call that people approve.
func (r *rig) put(ctx context.Context, p putParams) <-chan error {
	ended := make(chan error, 1)
	go func() {
		text, err := r.asAgent(ctx, putRow.Name, p)
		var n note
		if err == nil {
			err = json.Unmarshal(text, &n)
		}
		if err == nil && n.Text != p.Text {
			err = api.Failure(api.CodeInternal, "", "the answer is %s", text)
		}
		ended <- err
	}()
	return ended
}

// answer has people answer the only question.
func (r *rig) answer(approve bool) {
	r.t.Helper()
	q := r.stages.open()[0]
	_, err := r.Call(context.Background(), Caller{UID: 1000}, Request{Method: answerRow.Name, Text: encode(answerParams{q.ID, q.Run, approve})})
	must(r.t, err)
}

// Decisions of the service of approvals at the question take effect then, and not only with the answer.
func TestAskingHasAnOutcome(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	standings := r.attach(r.run)
	ended := r.put(context.Background(), asked)
	if now := <-standings; len(now.Notices) != 1 || now.Notices[0].Method != "note.asked" {
		t.Errorf("%+v", now)
	}
	r.parked(1)
	r.answer(true)
	must(t, <-ended)
}

var asked = putParams{Name: "a", Text: "b", Costs: 7, Ask: true, Key: "k"}

// A call that people approve is done when they have answered, once, and settled then. Its repetition
// joins it, and asks nothing again.
func TestAnApprovedCall(t *testing.T) {
	t.Parallel()
	for _, approve := range []bool{true, false} {
		r := newRig(t)
		first := r.put(context.Background(), asked)
		r.parked(1)
		second := r.put(context.Background(), asked)
		r.parked(2)
		if len(r.rows()) != 0 || len(r.stages.open()) != 1 || len(r.stages.reserved) != 1 {
			t.Errorf("%d rows, %v", len(r.rows()), r.stages)
		}
		other := asked
		other.Text = "c"
		wantCode(t, <-r.put(context.Background(), other), api.CodeConflict, "")
		r.answer(approve)
		for _, ended := range []<-chan error{first, second, r.put(context.Background(), asked)} {
			if err := <-ended; approve {
				must(t, err)
			} else {
				wantCode(t, err, api.CodeDenied, StageApproval)
			}
		}
		if done := len(r.rows()) == 1; done != approve || len(r.stages.reserved) != 0 || len(r.stages.used) != 1 || r.stages.used[0] != map[bool]int64{true: 7}[approve] {
			t.Errorf("done: %t, %+v", done, r.stages)
		}
	}
}

// A call that waits for people survives a restart: it is done when they have answered, also where
// they did while its run had no supervisor, and the answer is found again by the key.
func TestAnApprovalSurvivesARestart(t *testing.T) {
	t.Parallel()
	for _, away := range []bool{true, false} {
		r := newRig(t)
		first := r.put(context.Background(), asked)
		r.parked(1)
		r.close()
		wantCode(t, <-first, api.CodeBusy, "")
		r.open()
		if away {
			r.answer(true) // no supervisor is attached
		}
		r.attach(r.run)
		if !away {
			r.answer(true)
		}
		if len(r.rows()) != 1 {
			t.Error("it is not done")
		}
		must(t, <-r.put(context.Background(), asked))
		if len(r.rows()) != 1 || len(r.stages.used) != 1 {
			t.Errorf("%+v", r.stages)
		}
	}
}

// An approved call is refused where a grant was revoked meanwhile. The log has the question and
// the refusal.
func TestAnApprovalIsNoGrant(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ended := r.put(context.Background(), asked)
	r.parked(1)
	r.stages.with(func() { r.stages.granted = false })
	r.answer(true)
	wantCode(t, <-ended, api.CodeDenied, StageGrant)
	if len(r.rows()) != 0 || len(r.stages.reserved) != 0 {
		t.Errorf("%+v", r.stages)
	}
	var got []string
	for _, e := range r.entries() {
		if e.Method == putRow.Name {
			got = append(got, e.Verdict+" "+e.What+" "+e.Reason)
		}
	}
	if strings.Join(got, ", ") != " a put a, "+audit.VerdictDeny+" a " {
		t.Errorf("%q", got)
	}
}

// A caller that leaves does not take its question back: people may still answer it.
func TestACallerLeavesItsQuestion(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := r.put(ctx, asked)
	r.parked(1)
	cancel()
	wantCode(t, <-ended, api.CodeCancelled, "")
	r.answer(true)
	if len(r.rows()) != 1 {
		t.Error("it is not done")
	}
	must(t, <-r.put(context.Background(), asked))
}
