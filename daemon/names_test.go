package daemon

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

// decoded are parameters as a request has them.
func decoded(m api.Method, text json.RawMessage) parameters {
	value, err := m.Decode(text)
	return parameters{text, value, err}
}

// found returns the run that a caller's reference names.
func (r *rig) found(peer caller, ref string) (agent.Run, error) {
	r.t.Helper()
	m, _ := methods.Find(methods.RunGet.Name)
	params, err := json.Marshal(api.RunParams{Run: ref})
	must(r.t, err)
	return r.d.dispatcher().allow(peer.principal, m, decoded(m, params))
}

// startAs queues a run of a caller, with a delay.
func (r *rig) startAs(peer caller, name string, after ...string) (agent.Run, error) {
	r.t.Helper()
	s := spec(name)
	s.After = after
	result, err := r.d.runs().start(r.as(peer), api.StartParams{Spec: s, DelayNS: int64(time.Hour)})
	if err != nil {
		return agent.Run{}, err
	}
	return result.Run, nil
}

// Three callers use one name at the same time; for each it means their own run.
func TestTwoUsersMayUseOneName(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.keep()
	runs := map[uint32]agent.Run{}
	for _, peer := range []caller{ownerCaller, otherCaller, rootCaller} {
		run, err := r.startAs(peer, "web")
		must(t, err)
		runs[peer.owner.UID] = run
		_, err = r.startAs(peer, "web")
		if agent.KindOf(err) != agent.KindConflict || err == nil || !strings.Contains(err.Error(), string(run.Spec.ID)) {
			t.Errorf("the conflict is not with one's own run: %v", err)
		}
	}
	for _, peer := range []caller{ownerCaller, otherCaller, rootCaller} {
		for _, ref := range []string{"web", runs[peer.owner.UID].Name().String(), string(runs[peer.owner.UID].Spec.ID)} {
			if run, err := r.found(peer, ref); err != nil || run.Spec.ID != runs[peer.owner.UID].Spec.ID {
				t.Errorf("%s names %s: %+v, %v", peer, ref, run.Name(), err)
			}
		}
	}
	for _, uid := range []uint32{1000, 1001} {
		if run, err := r.found(rootCaller, agent.RunName{UID: uid, Name: "web"}.String()); err != nil || run.Spec.ID != runs[uid].Spec.ID {
			t.Errorf("root names the run of %d: %v", uid, err)
		}
	}
}

// For root, a bare name is never another user's run; the error says how to name that run.
func TestRootIsToldOfTheOwner(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.add("theirs", otherCaller.owner, agent.StateQueued)
	r.add("theirs", ownerCaller.owner, agent.StateQueued)
	_, err := r.found(rootCaller, "theirs")
	wantCode(t, err, api.CodeNotFound)
	if hint := api.ErrorOf(err).Data.Hint; !strings.Contains(hint, "1000/theirs") {
		t.Errorf("the hint is %q", hint)
	}
	for _, ref := range []string{"root/theirs", "1000/", "/theirs", "1000/theirs/x"} {
		for _, peer := range []caller{rootCaller, ownerCaller} {
			_, err := r.found(peer, ref)
			wantCode(t, err, api.CodeParams)
		}
	}
}

// Whether a name is free does not depend on the runs of others, and --after names one of the
// caller's own runs.
func TestNamesOfOthersDoNotShow(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.keep()
	theirs := r.add("secret", ownerCaller.owner, agent.StateQueued)
	mine, err := r.startAs(otherCaller, "mine")
	must(t, err)
	for _, ref := range []string{"secret", "1000/secret", "nothing", "1000/nothing"} {
		_, err := r.startAs(otherCaller, "later", ref)
		wantCode(t, err, api.CodeNotFound)
	}
	renamed, err := r.d.runs().rename(r.as(otherCaller), api.RenameParams{RunParams: api.RunParams{Run: "mine"}, Name: "secret"})
	if err != nil || renamed.Run.Name() != (agent.RunName{UID: 1001, Name: "secret"}) {
		t.Errorf("renamed: %v", err)
	}
	if run, err := r.found(ownerCaller, "secret"); err != nil || run.Spec.ID != theirs.Spec.ID || run.Spec.ID == mine.Spec.ID {
		t.Errorf("%v", err)
	}
}

// Root's runs may come after runs of users, named as UID/NAME. A run that root renames keeps
// its owner.
func TestRootNamesOwners(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.keep()
	first, err := r.startAs(ownerCaller, "first")
	must(t, err)
	_, err = r.startAs(rootCaller, "second", "first")
	wantCode(t, err, api.CodeNotFound)
	second, err := r.startAs(rootCaller, "second", string(first.Spec.ID))
	must(t, err)
	if !slices.Equal(second.Spec.After, []string{"1000/first"}) {
		t.Errorf("it comes after %q", second.Spec.After)
	}
	_, err = r.startAs(ownerCaller, "second", "first") // no circle with root's run of that name
	must(t, err)
	_, err = r.d.runs().rename(r.as(rootCaller), api.RenameParams{RunParams: api.RunParams{Run: "1000/second"}, Name: "first"})
	wantCode(t, err, api.CodeParams) // it would come after itself
	_, err = r.d.runs().rename(r.as(rootCaller), api.RenameParams{RunParams: api.RunParams{Run: "1000/first"}, Name: "second"})
	if agent.KindOf(err) != agent.KindConflict {
		t.Errorf("the name is the owner's: %v", err)
	}
	result, err := r.d.runs().rename(r.as(rootCaller), api.RenameParams{RunParams: api.RunParams{Run: "1000/first"}, Name: "third"})
	must(t, err)
	if name := result.Run.Name(); name.String() != "1000/third" {
		t.Errorf("renamed to %s", name)
	}
}
