package service

import (
	"context"
	"slices"
	"testing"

	"clove.run/clove/api"
	"clove.run/clove/audit"
)

// A call passes the stages in their order. A call that a stage refuses is not done, has no later
// stage, and is in the log. The control is the same call without the refusal.
func TestStagesRefuseInTheirOrder(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		stage  string
		code   api.Code
		refuse func(*answers)
		put    putParams
		passed []string
	}{
		{StageGrant, api.CodeDenied, func(a *answers) { a.granted = false }, putParams{Name: "a"}, []string{"grant"}},
		{StageTaints, api.CodeDenied, func(a *answers) { a.carried = []string{"mail", "web"} }, putParams{Name: "a"}, []string{"grant", "taints"}},
		{StageBudget, api.CodeBudget, func(*answers) {}, putParams{Name: "a", Costs: 101}, []string{"grant", "taints", "budget"}},
		{StageApproval, api.CodeParams, func(*answers) {}, putParams{Name: "a", Costs: 7, Ask: true}, []string{"grant", "taints", "budget"}}, // it has no key
		{"", 0, func(*answers) {}, putParams{Name: "a", Costs: 7}, []string{"grant", "taints", "budget", "settle"}},
	} {
		r := newRig(t)
		row.refuse(r.stages)
		_, err := r.asAgent(context.Background(), putRow.Name, row.put)
		if row.code != 0 {
			wantCode(t, err, row.code, row.stage)
		} else {
			must(t, err)
		}
		if !slices.Equal(r.stages.passed, row.passed) {
			t.Errorf("%s: %q, want %q", row.stage, r.stages.passed, row.passed)
		}
		done := len(r.rows()) == 1
		if want := []string{"grant of tool:a", "grant of tool:put"}; done && !slices.Equal(r.stages.uses, want) || !done && len(r.stages.uses) > 0 {
			t.Errorf("%s: %q are used", row.stage, r.stages.uses)
		}
		if done != (row.code == 0) {
			t.Errorf("%s: done: %t", row.stage, done)
		}
		verdict := map[bool]string{true: audit.VerdictAllow, false: audit.VerdictDeny}[done]
		if all := r.entries(); len(all) != 1 || all[0].Verdict != verdict || all[0].What != "a" {
			t.Errorf("%s: the log has %+v", row.stage, all)
		}
	}
}

// Asking what a call would need does nothing.
func TestDeclarationsDoNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.Serves()[putRow.Name]
	p, err := m.Decode([]byte(`{"name":"a","text":"b","costs":3,"ask":true}`))
	must(t, err)
	d, err := m.declare(p)
	if err != nil || !slices.Equal(d.Covers, []string{"tool:a", "tool:put", "tool:put"}) || d.Costs["units"] != 3 || d.Approve != "put a" || !slices.Equal(d.Avoids, []string{"web"}) {
		t.Errorf("%+v, %v", d, err)
	}
	if len(r.stages.passed) != 0 || len(r.rows()) != 0 || len(r.entries()) != 0 {
		t.Error("something was done")
	}
}

// A call with costs in a stage that no service has is refused, and not skipped.
func TestAStageThatNothingServes(t *testing.T) {
	t.Parallel()
	for stage, without := range map[string]func(*Config){
		StageGrant: func(c *Config) { c.Grants = nil }, StageTaints: func(c *Config) { c.Taints = nil },
		StageBudget: func(c *Config) { c.Ledger = nil }, StageApproval: func(c *Config) { c.Approvals = nil },
	} {
		r := newRigWith(t, without)
		_, err := r.asAgent(context.Background(), putRow.Name, putParams{Name: "a", Costs: 1, Ask: true, Key: stage})
		wantCode(t, err, api.CodeUnenforceable, stage)
		if len(r.rows()) != 0 {
			t.Errorf("%s: it was done", stage)
		}
	}
}

// A method that may wait for people has a key.
func TestAnApprovalNeedsAKey(t *testing.T) {
	t.Parallel()
	s := New("note").On(Write(getRow, Stages[nameParams]{Approve: func(nameParams) string { return "?" }},
		func(*Call, nameParams) (n note, out Outcome, err error) { return n, out, nil }))
	if _, err := tableOf([]*Service{s}); err == nil {
		t.Error("its answer could not be found")
	}
	for name, stages := range map[string]Stages[putParams]{"costs": {Costs: costs}, "a question": {Approve: func(putParams) string { return "?" }}} {
		read := New("note").On(Read(putRow, stages, func(*Call, putParams) (n note, out Outcome, err error) { return n, out, nil }))
		if _, err := tableOf([]*Service{read}); err == nil {
			t.Errorf("%s of a method that only reads would be left out", name)
		}
	}
	if _, err := tableOf([]*Service{New("a").On(Read(getRow, Stages[nameParams]{}, get)), New("b").On(Read(getRow, Stages[nameParams]{}, get))}); err == nil {
		t.Error("two services serve one method")
	}
}
