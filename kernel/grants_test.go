package kernel

import (
	"clove.run/clove/kernel/grants"
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
)

// Why a grant was wanted is in the log, of one that was given, derived or refused.
func TestTheReasonOfAGrantIsInTheLog(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Socket: true})
	g := answerOf[api.GrantResult](t)(r.asUser(1000, methods.GrantGive.Name, api.GrantGiveParams{Grant: "tool:fetch", Reason: "one report"})).Grant
	_, err := r.asAgent(agents.GrantDerive.Name, api.GrantDeriveParams{From: g.ID, Grant: "tool:fetch", Reason: "for a part of it"})
	must(t, err)
	_, err = r.asAgent(agents.GrantDerive.Name, api.GrantDeriveParams{From: g.ID, Grant: "tool:*", Reason: "for more"})
	wantCode(t, err, api.CodeDenied)
	_, err = r.asUser(1000, agents.GrantRevoke.Name, api.GrantRevokeParams{ID: g.ID})
	must(t, err)
	var got []string
	for _, e := range r.entries() {
		if strings.HasPrefix(e.Method, "grant.") {
			got = append(got, e.Method+" "+e.What+" "+e.Verdict+" "+e.Reason)
		}
	}
	slices.Sort(got) // a refusal may be written later
	want := []string{"grant.derive tool:* deny for more", "grant.derive tool:fetch allow for a part of it", "grant.give tool:fetch allow one report", "grant.revoke tool:fetch allow "}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A run begins with the grants of its command line, given by its owner, once: a second
// start adds none, and brings back none that was revoked.
func TestFirstGrantsAreGivenOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Grants: []string{"tool:fetch", "state:/notes:ro"}})
	held := r.grants()
	if len(held) != 2 || held["tool:fetch"].Giver != "uid:1000" || held["tool:fetch"].Holder != r.run.Spec.ID {
		t.Fatalf("%+v", held)
	}
	_, err := r.asUser(1000, agents.GrantRevoke.Name, api.GrantRevokeParams{ID: held["tool:fetch"].ID})
	must(t, err)
	r.attach(true)
	r.attach(false)
	if held := r.grants(); len(held) != 1 {
		t.Errorf("%+v", held)
	}
}

// Each start of a manifest's run has what the manifest grants anew, with the digest as the reason: what
// was revoked or used up is there again, and what was derived is gone. What people gave stays. The control
// is a run without a manifest.
func TestAManifestGrantsAnewAtEachStart(t *testing.T) {
	t.Parallel()
	run := newRun(1000, agent.Kernel{Grants: []string{"tool:fetch", "state:/notes:ro", "state:/all:ro"}})
	run.Spec.Manifest = agent.Manifest{Name: "web", SHA256: strings.Repeat("a", 64)}
	r := newRigOf(t, run)
	first := r.grants()
	if reason := first["tool:fetch"].Reason; reason != "manifest web sha256:"+run.Spec.Manifest.SHA256 {
		t.Errorf("the reason is %q", reason)
	}
	given := answerOf[api.GrantResult](t)(r.asUser(1000, methods.GrantGive.Name, api.GrantGiveParams{Grant: "tool:given"})).Grant
	for _, from := range []api.Grant{first["state:/notes:ro"], given} {
		narrow := map[string]string{"state:/notes:ro": "state:/notes/today:ro", "tool:given": "tool:given"}[from.Grant]
		_, err := r.asAgent(agents.GrantDerive.Name, api.GrantDeriveParams{From: from.ID, Grant: narrow})
		must(t, err)
	}
	_, err := r.asUser(1000, agents.GrantRevoke.Name, api.GrantRevokeParams{ID: first["tool:fetch"].ID})
	must(t, err)
	r.attach(false) // cloved is back: the same life
	if rows := r.rows(run.Spec.ID); rows != "account true, 0 reservations, 5 grants" {
		t.Error("control: ", rows)
	}
	r.attach(true)
	next := r.grants()
	if len(next) != 4 || next["tool:given"].ID != given.ID || r.rows(run.Spec.ID) != "account true, 0 reservations, 4 grants" {
		t.Errorf("%s: %+v", r.rows(run.Spec.ID), next)
	}
	for _, grant := range run.Spec.Kernel.Grants {
		if next[grant].ID == "" || next[grant].ID == first[grant].ID || next[grant].Reason != first[grant].Reason {
			t.Errorf("%s: %+v", grant, next[grant])
		}
	}
}

// A check costs nothing, and says which grant decides, or what is missing.
func TestCheckSaysWhy(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Grants: []string{"tool:fetch", "state:/notes:ro"}})
	for what, allowed := range map[string]bool{"tool:fetch": true, "tool:shell": false, "state:/notes/a:ro": true, "state:/notes/a:rw": false, "net:example.com:443": false} {
		before := r.grants()
		got := answerOf[api.GrantCheckResult](t)(r.asAgent(agents.GrantCheck.Name, api.GrantCheckParams{What: what}))
		if got.Allowed != allowed || (got.Grant != "") != allowed || got.Reason == "" {
			t.Errorf("%s: %+v", what, got)
		}
		if fmt.Sprint(r.grants()) != fmt.Sprint(before) {
			t.Errorf("%s changed the grants", what)
		}
	}
	for _, what := range []string{"", "tool", "nonsense:x", "tool:a\nb"} {
		_, err := r.asAgent(agents.GrantCheck.Name, api.GrantCheckParams{What: what})
		wantCode(t, err, api.CodeParams)
	}
}

// A check takes no use away, however often a caller asks.
func TestChecksUseNothingUp(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Socket: true})
	uses := int64(1)
	_, err := r.asUser(1000, methods.GrantGive.Name, api.GrantGiveParams{Grant: "tool:fetch", Uses: &uses})
	must(t, err)
	for range 3 {
		for _, check := range []func(string, any) (json.RawMessage, error){r.asAgent, func(method string, params any) (json.RawMessage, error) { return r.asUser(1000, method, params) }} {
			if got := answerOf[api.GrantCheckResult](t)(check(agents.GrantCheck.Name, api.GrantCheckParams{What: "tool:fetch"})); !got.Allowed {
				t.Errorf("%+v", got)
			}
		}
	}
	if g := r.grants()["tool:fetch"]; g.UsesLeft == nil || *g.UsesLeft != 1 {
		t.Errorf("%+v", g)
	}
}

// An agent derives what its grant covers and nothing wider, for itself only.
func TestDeriveIsNarrower(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Grants: []string{"state:/notes:ro", "tool:fetch"}})
	from := r.grants()["state:/notes:ro"].ID
	other := newRig(t, agent.Kernel{Grants: []string{"tool:shell"}})
	for _, p := range []struct {
		api.GrantDeriveParams
		code api.Code
	}{
		{api.GrantDeriveParams{From: from, Grant: "state:/notes/today:ro"}, 0},
		{api.GrantDeriveParams{From: from, Grant: "state:/notes/today:rw"}, api.CodeDenied},
		{api.GrantDeriveParams{From: from, Grant: "state:/:ro"}, api.CodeDenied},
		{api.GrantDeriveParams{From: from, Grant: "state:/notes/../etc:ro"}, api.CodeParams},
		{api.GrantDeriveParams{From: from, Grant: "tool:fetch"}, api.CodeDenied},
		{api.GrantDeriveParams{From: "none", Grant: "tool:fetch"}, api.CodeNotFound},
		{api.GrantDeriveParams{From: other.grants()["tool:shell"].ID, Grant: "tool:shell"}, api.CodeNotFound},
		{api.GrantDeriveParams{From: from, To: other.run.Spec.ID, Grant: "state:/notes/today:ro"}, api.CodeNotFound},
		{api.GrantDeriveParams{From: from, Grant: "state:/notes/b:ro", Uses: new(int64)}, api.CodeParams},
		{api.GrantDeriveParams{From: from, Grant: "state:/notes/b:ro", Expires: r.engine.Now()}, api.CodeParams},
		{api.GrantDeriveParams{From: from, Grant: "state:/notes/b:ro", Reason: "a\nb"}, api.CodeParams},
	} {
		_, err := r.asAgent(agents.GrantDerive.Name, p.GrantDeriveParams)
		if p.code == 0 {
			must(t, err)
		} else {
			wantCode(t, err, p.code)
		}
	}
	held := r.grants()
	if g := held["state:/notes/today:ro"]; len(held) != 3 || g.Parent != from || g.Giver != string(r.run.Spec.ID) || g.Holder != r.run.Spec.ID {
		t.Errorf("%+v", held)
	}
}

// Revoking takes all that was derived. An agent revokes what it derived itself; the giver
// revokes what the agent was given.
func TestRevokeIsTransitive(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Grants: []string{"state:/notes:ro"}})
	root := r.grants()["state:/notes:ro"].ID
	derive := func(from, text string) string {
		return answerOf[api.GrantResult](t)(r.asAgent(agents.GrantDerive.Name, api.GrantDeriveParams{From: from, Grant: text})).Grant.ID
	}
	child := derive(root, "state:/notes/a:ro")
	derive(child, "state:/notes/a/b:ro")
	sibling := derive(root, "state:/notes/c:ro")
	_, err := r.asAgent(agents.GrantRevoke.Name, api.GrantRevokeParams{ID: root})
	wantCode(t, err, api.CodeDenied)
	gone := answerOf[api.GrantRevokeResult](t)(r.asAgent(agents.GrantRevoke.Name, api.GrantRevokeParams{ID: child}))
	if len(gone.Revoked) != 2 || len(r.grants()) != 2 {
		t.Errorf("%+v, %+v", gone, r.grants())
	}
	for _, id := range []string{child, "", "none", strings.Repeat("x", 1000)} {
		_, err := r.asAgent(agents.GrantRevoke.Name, api.GrantRevokeParams{ID: id})
		wantCode(t, err, api.CodeNotFound)
	}
	gone = answerOf[api.GrantRevokeResult](t)(r.asUser(1000, agents.GrantRevoke.Name, api.GrantRevokeParams{ID: root}))
	if len(gone.Revoked) != 2 || gone.Revoked[1] != sibling || len(r.grants()) != 0 {
		t.Errorf("%+v, %+v", gone, r.grants())
	}
}

// A grant ends with its expiry, and with that of the one that it was derived from.
func TestGrantsExpire(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{})
	_, err := r.asUser(1000, methods.GrantGive.Name, api.GrantGiveParams{Grant: "tool:fetch", Expires: r.engine.Now().Add(time.Minute), Reason: "for today"})
	must(t, err)
	_, err = r.asAgent(agents.GrantDerive.Name, api.GrantDeriveParams{From: r.grants()["tool:fetch"].ID, Grant: "tool:fetch"})
	must(t, err)
	check := func() api.GrantCheckResult {
		return answerOf[api.GrantCheckResult](t)(r.asAgent(agents.GrantCheck.Name, api.GrantCheckParams{What: "tool:fetch"}))
	}
	if got := check(); !got.Allowed {
		t.Errorf("%+v", got)
	}
	r.clock.Add(60)
	if got := check(); got.Allowed || !strings.Contains(got.Reason, "expired") {
		t.Errorf("%+v", got)
	}
}

// A long list comes in parts, each grant once, also while some are revoked between two parts.
func TestListInParts(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{})
	const all = 2*grants.InAnswer + 3
	for i := range all {
		_, err := r.asUser(1000, methods.GrantGive.Name, api.GrantGiveParams{Grant: fmt.Sprintf("tool:t%d", i)})
		must(t, err)
		r.clock.Add(1)
	}
	var got []string
	p := api.GrantListParams{}
	for part := range 4 {
		text, err := r.asAgent(agents.GrantList.Name, p)
		must(t, err)
		var list api.GrantListResult
		must(t, json.Unmarshal(text, &list))
		for _, g := range list.Grants {
			got = append(got, g.Grant)
		}
		if p.After = list.Next; list.Next == "" {
			if part != 2 {
				t.Errorf("%d parts", part+1)
			}
			break
		}
	}
	for i, text := range got {
		if text != fmt.Sprintf("tool:t%d", i) {
			t.Fatalf("%d: %s", i, text)
		}
	}
	if len(got) != all {
		t.Errorf("%d of %d", len(got), all)
	}
	list := answerOf[api.GrantListResult](t)(r.asAgent(agents.GrantList.Name, api.GrantListParams{After: "revoked"}))
	if len(list.Grants) != grants.InAnswer || list.Grants[0].Grant != "tool:t0" {
		t.Errorf("%+v", list)
	}
}

// The longest answer fits into a line of an agent's socket.
func TestTheLongestListFitsIntoALine(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{})
	uses := int64(1) << 50
	for i := range grants.InAnswer {
		_, err := r.asUser(1000, methods.GrantGive.Name, api.GrantGiveParams{Grant: fmt.Sprintf("tool:%03d%s", i, strings.Repeat("t", 253)), Expires: r.engine.Now().Add(time.Hour), Uses: &uses, Reason: strings.Repeat("\"", 256)})
		must(t, err)
	}
	text, err := r.asAgent(agents.GrantList.Name, api.Nothing{})
	must(t, err)
	if len(text) > api.MaxAgentLine-200 {
		t.Errorf("%d bytes", len(text))
	}
}

// A net grant needs a gate that can open it, and is held against what the owner may reach.
// With an agent socket a run has a gate, also without a network.
func TestNetGrantsNeedAGate(t *testing.T) {
	t.Parallel()
	give := func(r *rig, target string) error {
		_, err := r.asUser(1000, methods.GrantGive.Name, api.GrantGiveParams{Grant: "net:" + target})
		return err
	}
	without := newRig(t, agent.Kernel{Budgets: []string{"cpu_ms=1000"}})
	wantCode(t, give(without, "example.com:443"), api.CodeConflict)
	with := newRig(t, agent.Kernel{Socket: true})
	must(t, give(with, "example.com:443"))
	wantCode(t, give(with, "forbidden.example"), api.CodeDenied)
	root := newRigOf(t, newRun(0, agent.Kernel{Socket: true}))
	must(t, give(root, "forbidden.example"))
	if n := len(without.grants()) + len(with.grants()) + len(root.grants()); n != 2 {
		t.Errorf("%d grants", n)
	}
}
