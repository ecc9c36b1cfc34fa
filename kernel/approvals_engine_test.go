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
	"clove.run/clove/audit"
)

// asksForChildren is a family whose parent has no grant for the manifest helper, and asks people about children.
func asksForChildren(t *testing.T, sheet agent.Spec) *family {
	t.Helper()
	f := newFamily(t, sheetOf(agent.Kernel{}), agent.Kernel{Asks: []string{agent.AskSpawn}, Grants: []string{"tool:fetch"}})
	f.add("helper", sheet)
	return f
}

// spawning begins a call for a child of the manifest helper, and returns its end.
func (f *family) spawning(p api.SpawnParams) <-chan error {
	p.Manifest = "helper"
	ended := make(chan error, 1)
	go func() {
		text, err := f.asAgent(agents.AgentSpawn.Name, p)
		var result api.SpawnResult
		if err == nil {
			err = json.Unmarshal(text, &result)
		}
		if err == nil && result.Child.Manifest != "helper" {
			err = fmt.Errorf("%s", text)
		}
		ended <- err
	}()
	return ended
}

// asked waits for the questions that wait, so many.
func (r *rig) asked(count int) []api.Approval {
	r.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		all, err := asks[api.ApprovalListResult](r, 1000, methods.ApprovalList.Name, api.ApprovalListParams{State: api.ApprovalWaits})
		must(r.t, err)
		if len(all.Approvals) == count {
			return all.Approvals
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("%d questions wait instead of %d: %+v", len(all.Approvals), count, all.Approvals)
		}
	}
}

func no(a api.Approval, reason string) api.ApprovalRespondParams {
	return api.ApprovalRespondParams{ID: a.ID, Digest: a.Digest, Reason: reason}
}

// A child that no grant covers is a question, which shows all that it would have. After the yes it is started once, and
// repetitions of the call get its answer. The control is the same run without --ask.
func TestAChildIsAQuestion(t *testing.T) {
	t.Parallel()
	control := newFamily(t, sheetOf(agent.Kernel{}), agent.Kernel{Grants: []string{"tool:fetch"}})
	control.add("helper", sheetOf(agent.Kernel{}))
	wantCode(t, <-control.spawning(api.SpawnParams{Keyed: api.Keyed{Key: "k"}}), api.CodeDenied)

	sheet := sheetOf(agent.Kernel{Grants: []string{"tool:fetch"}})
	sheet.Env = []string{"TOKEN=secret"}
	f := asksForChildren(t, sheet)
	p := api.SpawnParams{Args: []string{"a\u202eb"}, Env: []string{"MODE=fast"}, Why: "I need help", Keyed: api.Keyed{Key: "k"}}
	first := f.spawning(p)
	q := f.asked(1)[0]
	second := f.spawning(p)
	added, err := asks[api.ManifestListResult](f.rig, 1000, methods.ManifestList.Name, api.ManifestListParams{})
	must(t, err)
	at := slices.IndexFunc(added.Manifests, func(m api.AddedManifest) bool { return m.Name == "helper" })
	shown := strings.Join(q.Shown, "\n")
	for _, want := range []string{added.Manifests[at].Digest, `command: ["/bin/true" "a\u202eb"]`, "variable: MODE=fast", "TOKEN, with", "network: none", "grants: tool:fetch", "64 MiB of memory"} {
		if !strings.Contains(shown, want) {
			t.Errorf("%s is not in\n%s", want, shown)
		}
	}
	if strings.Contains(shown, "secret") || q.Says != "I need help" || q.Kind != api.ApproveSpawn || q.Rule != "spawn:helper" || q.Cost == "" {
		t.Errorf("%+v", q)
	}
	own := answerOf[api.ApprovalListResult](t)(f.asAgent(agents.ApprovalOwn.Name, api.ApprovalOwnParams{}))
	if len(own.Approvals) != 1 || own.Approvals[0].Shown != nil {
		t.Errorf("the agent sees %+v", own)
	}
	if f.runs.count() != 0 {
		t.Fatal("it started before the yes")
	}
	given := yes(q)
	given.ForMS = 5
	_, err = f.responds(1000, given)
	wantCode(t, err, api.CodeParams) // it is done once
	_, err = f.responds(1000, yes(q))
	must(t, err)
	for _, ended := range []<-chan error{first, second, f.spawning(p)} {
		must(t, <-ended)
	}
	_, err = f.responds(1000, yes(q))
	wantCode(t, err, api.CodeConflict)
	f.waitQueued(1)
	var log []string
	for _, e := range f.entries() {
		if e.Method == agents.AgentSpawn.Name || e.Method == methods.ApprovalRespond.Name && e.Verdict == audit.VerdictAllow {
			log = append(log, strings.TrimSpace(e.Method+" "+e.Verdict))
		}
	}
	if want := []string{"agent.spawn", "approval.respond allow", "agent.spawn allow"}; !slices.Equal(log, want) {
		t.Errorf("%q", log)
	}
}

// waitQueued waits until so many children are queued, and no more.
func (f *family) waitQueued(count int) {
	f.t.Helper()
	for deadline := time.Now().Add(patience); f.runs.count() < count && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
	}
	if got := f.runs.count(); got != count {
		f.t.Errorf("%d children are queued instead of %d", got, count)
	}
}
