package kernel

import (
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/grant"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// give is a grant of the owner's.
func (r *rig) give(text string) api.Grant {
	r.t.Helper()
	return answerOf[api.GrantResult](r.t)(r.asUser(1000, methods.GrantGive.Name, api.GrantGiveParams{Grant: text})).Grant
}

// derive is the agent's, for a run.
func (r *rig) derive(from, text string, to agent.ID) (api.Grant, error) {
	answer, err := r.asAgent(agents.GrantDerive.Name, api.GrantDeriveParams{From: from, Grant: text, To: to})
	if err != nil {
		return api.Grant{}, err
	}
	return answerOf[api.GrantResult](r.t)(answer, nil).Grant, nil
}

// start stores the grants of a child as its spawn does, and attaches it.
func (r *rig) start(child agent.Run) (*rig, error) {
	err := r.within(func(c *service.Call) (service.Outcome, error) { return r.Kernel.grants.ForChild(c, child) })
	if err != nil {
		return nil, err
	}
	return r.as(child), nil
}

// A grant of kind spawn is for one manifest, by the digest that it had when it was given, also where
// it is passed on. It needs a manifest that was added and a run that may have children.
func TestASpawnGrantIsPinned(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Grants: []string{"spawn:writer"}, Budgets: []string{"children=4"}})
	r.manifests.Store("writer", "sha256:later")
	first := r.grants()["spawn:writer"]
	if first.Digest != "sha256:writer" {
		t.Errorf("%+v", first)
	}
	derived, err := r.derive(first.ID, "spawn:writer", "")
	must(t, err)
	r.clock.Add(1)
	given := r.give("spawn:writer")
	if derived.Digest != "sha256:writer" || given.Digest != "sha256:later" {
		t.Errorf("derived %+v, given anew %+v", derived, given)
	}
	must(t, r.within(func(c *service.Call) (out service.Outcome, err error) {
		g, err := r.Kernel.grants.Spawning(c, "writer")
		if err == nil && g.ID != given.ID {
			t.Errorf("%+v", g)
		}
		_, missing := r.Kernel.grants.Spawning(c, "reader")
		wantCode(t, missing, api.CodeDenied)
		return out, err
	}))
	for text, code := range map[string]api.Code{"spawn:reader": api.CodeNotFound, "spawn:*": api.CodeParams, "spawn:writ*": api.CodeParams} {
		_, err := r.asUser(1000, methods.GrantGive.Name, api.GrantGiveParams{Grant: text})
		wantCode(t, err, code)
	}
	childless := newRig(t, agent.Kernel{Socket: true})
	_, err = childless.asUser(1000, methods.GrantGive.Name, api.GrantGiveParams{Grant: "spawn:writer"})
	wantCode(t, err, api.CodeConflict)
	alone := newRigOf(t, newRun(1000, agent.Kernel{Budgets: []string{"children=4"}}))
	alone.config.Manifest = nil
	must(t, alone.Kernel.Close())
	alone.serve(alone.config)
	_, err = alone.asUser(1000, methods.GrantGive.Name, api.GrantGiveParams{Grant: "spawn:writer"})
	wantCode(t, err, api.CodeNotFound)
}

// A child begins with what its Spec names, derived from its parent's grants, and with nothing that they
// do not cover. The controls are the same texts that they do cover.
func TestAChildBeginsWithDerivedGrants(t *testing.T) {
	t.Parallel()
	parent := newRig(t, agent.Kernel{Grants: []string{"tool:web/*", "state:/notes:ro", "spawn:writer"}})
	uses := int64(3)
	_, err := parent.asUser(1000, methods.GrantGive.Name, api.GrantGiveParams{Grant: "tool:counted", Uses: &uses})
	must(t, err)
	child, err := parent.start(childOf(parent.run, "child", agent.Kernel{Grants: []string{"tool:web/get", "state:/notes/a:ro", "tool:counted", "spawn:writer"}}))
	must(t, err)
	held := child.grants()
	if len(held) != 4 || held["tool:web/get"].Giver != string(parent.run.Spec.ID) || held["tool:web/get"].Parent == "" || *held["tool:counted"].UsesLeft != 3 || held["spawn:writer"].Digest != "sha256:writer" {
		t.Fatalf("%+v", held)
	}
	for _, text := range []string{"tool:*", "tool:mail", "state:/notes/a:rw", "state:/:ro", "spawn:reader", "model:small", "net:example.com"} {
		_, err := parent.start(childOf(parent.run, "wide", agent.Kernel{Grants: []string{"tool:web/get", text}, Socket: true}))
		wantCode(t, err, api.CodeDenied)
	}
	_, err = parent.start(childOf(parent.run, "stars", agent.Kernel{Grants: []string{"spawn:*"}}))
	wantCode(t, err, api.CodeParams)
	for text := range held { // what is revoked does not come back with a restart
		if text == "tool:web/get" {
			_, err := parent.asUser(1000, agents.GrantRevoke.Name, api.GrantRevokeParams{ID: held[text].Parent})
			must(t, err)
		}
	}
	child.attach(true)
	if held := child.grants(); len(held) != 3 {
		t.Errorf("%+v", held)
	}
}

// An agent derives for the runs below it, nothing wider than their manifests, and takes that back; the
// supervisor of the other run is told both times. The controls are the run itself and the same scope
// where the manifest names it.
func TestDeriveForADescendant(t *testing.T) {
	t.Parallel()
	top := newRig(t, agent.Kernel{Grants: []string{"tool:web/*", "tool:mail"}})
	middle, err := top.start(childOf(top.run, "middle", agent.Kernel{Socket: true}))
	must(t, err)
	envelope := childOf(middle.run, "below", agent.Kernel{Grants: []string{"tool:web/*"}})
	below := middle.as(envelope)
	standings := below.attach(false)
	<-standings
	held := top.grants()
	web, mail := held["tool:web/*"].ID, held["tool:mail"].ID
	g, err := top.derive(web, "tool:web/get", below.run.Spec.ID)
	must(t, err)
	if now := receive(t, standings); g.Holder != below.run.Spec.ID || len(now.Notices) != 1 || now.Notices[0].Method != api.NoteGrantsChanged || len(below.grants()) != 1 {
		t.Errorf("%+v, %+v", g, now)
	}
	_, err = top.derive(mail, "tool:mail", below.run.Spec.ID)
	wantCode(t, err, api.CodeDenied)
	_, err = top.derive(mail, "tool:mail", "")
	must(t, err)
	ended := childOf(top.run, "ended", agent.Kernel{Grants: []string{"tool:web/*"}})
	ended.State = agent.StateEnded
	top.runs.Store(ended.Spec.ID, ended)
	beside := top.as(newRun(1000, agent.Kernel{Socket: true}))
	for name, to := range map[string]agent.ID{"above": top.run.Spec.ID, "beside": beside.run.Spec.ID, "none": agent.NewID()} {
		_, err = below.derive(g.ID, "tool:web/get", to)
		if wantCode(t, err, api.CodeNotFound); err == nil {
			t.Error(name)
		}
	}
	_, err = top.derive(web, "tool:web/get", ended.Spec.ID)
	wantCode(t, err, api.CodeNotFound)
	_, err = below.asAgent(agents.GrantRevoke.Name, api.GrantRevokeParams{ID: g.ID})
	wantCode(t, err, api.CodeDenied)
	_, err = middle.asAgent(agents.GrantRevoke.Name, api.GrantRevokeParams{ID: g.ID})
	wantCode(t, err, api.CodeNotFound)
	_, err = top.asAgent(agents.GrantRevoke.Name, api.GrantRevokeParams{ID: g.ID})
	must(t, err)
	if now := receive(t, standings); len(now.Notices) != 1 || len(below.grants()) != 0 {
		t.Errorf("%+v", now)
	}
}

// A grant of the network that a parent loses is closed for its child too, at once.
func TestAChildLosesWhatItsParentLoses(t *testing.T) {
	t.Parallel()
	parent := newRig(t, agent.Kernel{Grants: []string{"net:example.com"}})
	child, err := parent.start(childOf(parent.run, "child", agent.Kernel{Grants: []string{"net:example.com"}}))
	must(t, err)
	standings := child.attach(false)
	if now := <-standings; len(now.Net) != 1 {
		t.Fatalf("control: %+v", now)
	}
	_, err = parent.asUser(1000, agents.GrantRevoke.Name, api.GrantRevokeParams{ID: parent.grants()["net:example.com"].ID})
	must(t, err)
	if now := receive(t, standings); len(now.Net) != 0 {
		t.Errorf("%+v", now)
	}
}

// Of several grants that cover a text, a child's comes from the one that lasts longest.
func TestAChildsGrantIsFromTheOneThatLastsLongest(t *testing.T) {
	t.Parallel()
	parent := newRig(t, agent.Kernel{Socket: true})
	one, until := int64(1), time.Unix(parent.clock.Load(), 0).Add(time.Hour)
	for _, p := range []api.GrantGiveParams{{Grant: "tool:a", Uses: &one}, {Grant: "tool:a", Expires: until}, {Grant: "tool:*"}, {Grant: "tool:a", Expires: until, Uses: &one}} {
		_, err := parent.asUser(1000, methods.GrantGive.Name, p)
		must(t, err)
	}
	child, err := parent.start(childOf(parent.run, "child", agent.Kernel{Grants: []string{"tool:a"}}))
	must(t, err)
	must(t, child.engine.Read(func(tx *store.KernelTx) error {
		from, err := store.Grants.Get(tx, child.grants()["tool:a"].Parent)
		if err == nil && (from == nil || from.Pattern != "*" || from.UsesLeft != grant.Unlimited) {
			t.Errorf("%+v", from)
		}
		return err
	}))
}
