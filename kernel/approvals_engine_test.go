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
	for _, want := range []string{added.Manifests[at].Digest, "command: /bin/true\nargument: a\u202eb", "variable: MODE=fast", "TOKEN, with", "network: none", "grants: tool:fetch", "64 MiB of memory"} {
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

// answered begins a call for a child, answers its question, and returns its end.
func (f *family) answered(p api.SpawnParams, answer func(api.Approval) api.ApprovalRespondParams) error {
	f.t.Helper()
	ended := f.spawning(p)
	_, err := f.responds(1000, answer(f.asked(1)[0]))
	must(f.t, err)
	return <-ended
}

func keyed(key string) api.SpawnParams { return api.SpawnParams{Keyed: api.Keyed{Key: key}} }

// What people refuse is not done, the agent reads the reason, and the same is not asked again; other arguments, and a
// manifest that was changed, are other questions.
func TestARefusedChildIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	f := asksForChildren(t, sheetOf(agent.Kernel{}))
	refuse := func(q api.Approval) api.ApprovalRespondParams { return no(q, "too many") }
	err := f.answered(keyed("a"), refuse)
	if wantCode(t, err, api.CodeDenied); !strings.Contains(fmt.Sprint(err), "too many") {
		t.Error(err)
	}
	for _, again := range []api.SpawnParams{keyed("a"), keyed("b"), {Why: "please", Keyed: api.Keyed{Key: "c"}}} {
		err := <-f.spawning(again)
		if wantCode(t, err, api.CodeDenied); !strings.Contains(fmt.Sprint(err), "too many") {
			t.Error(err)
		}
	}
	f.asked(0)
	other := keyed("d")
	other.Args = []string{"x"}
	wantCode(t, f.answered(other, refuse), api.CodeDenied)
	changed := sheetOf(agent.Kernel{})
	changed.Command = agent.RawStrings{"/bin/other"}
	f.clock.Add(1)
	f.add("helper", changed)
	must(t, f.answered(keyed("e"), yes))
	f.waitQueued(1)
}

// What is started is what people saw: neither other arguments with the same key, nor a manifest of the same name that came
// between the question and the answer. The control is a grant, whose next call takes what the agent names then.
func TestNothingIsSwappedForAChild(t *testing.T) {
	t.Parallel()
	f := asksForChildren(t, sheetOf(agent.Kernel{}))
	first := keyed("k")
	first.Args = []string{"shown"}
	ended := f.spawning(first)
	q := f.asked(1)[0]
	evil := keyed("k")
	evil.Args = []string{"evil"}
	wantCode(t, <-f.spawning(evil), api.CodeConflict)
	changed := sheetOf(agent.Kernel{})
	changed.Command = agent.RawStrings{"/bin/evil"}
	f.clock.Add(1)
	f.add("helper", changed)
	evil.Key = "other"
	second := f.spawning(evil)
	both := f.asked(2)
	_, err := f.responds(1000, api.ApprovalRespondParams{ID: q.ID, Digest: both[0].Digest, Allow: true})
	_, also := f.responds(1000, api.ApprovalRespondParams{ID: q.ID, Digest: both[1].Digest, Allow: true})
	if (err == nil) == (also == nil) { // one of them is the question's own
		t.Errorf("%v, %v", err, also)
	}
	must(t, <-ended)
	f.waitQueued(1)
	run := f.queued(f.runs.queued[0])
	if got := []string(run.Spec.Command); !slices.Equal(got, []string{"/bin/true", "shown"}) {
		t.Errorf("%q is started", got)
	}
	select {
	case err := <-second:
		t.Errorf("the other call has the answer, too: %v", err)
	default:
	}
	_, err = f.asUser(1000, methods.GrantGive.Name, api.GrantGiveParams{Grant: "spawn:helper"})
	must(t, err)
	evil.Key = "control"
	must(t, <-f.spawning(evil))
	f.waitQueued(2)
	if run := f.queued(f.runs.queued[1]); run.Spec.Command[0] != "/bin/evil" {
		t.Errorf("control: %q", run.Spec.Command)
	}
}

// What another rule refuses is refused without a question, and so is what has no key or has files. What is refused by
// the time of the answer is not done: a yes is no right to start what the owner may not. The controls are the yes of the
// other tests.
func TestAQuestionIsNoWayAroundARule(t *testing.T) {
	t.Parallel()
	large := sheetOf(agent.Kernel{})
	large.Limits.MemoryBytes, large.Limits.MemorySwapBytes = 1<<30, 1<<30
	for name, c := range map[string]struct {
		sheet agent.Spec
		p     api.SpawnParams
		code  api.Code
	}{
		"more memory than the parent":    {large, keyed("k"), api.CodeDenied},
		"a grant that the parent lacks":  {sheetOf(agent.Kernel{Grants: []string{"tool:write"}}), keyed("k"), api.CodeDenied},
		"a request beyond the manifest":  {sheetOf(agent.Kernel{}), api.SpawnParams{Limits: api.SpawnLimits{Pids: 1 << 20}, Keyed: api.Keyed{Key: "k"}}, api.CodeDenied},
		"no key":                         {sheetOf(agent.Kernel{}), api.SpawnParams{}, api.CodeParams},
		"files":                          {sheetOf(agent.Kernel{}), api.SpawnParams{Files: []api.SpawnFile{{From: "/a", To: "/b"}}, Keyed: api.Keyed{Key: "k"}}, api.CodeParams},
		"more words than people read":    {sheetOf(agent.Kernel{}), api.SpawnParams{Why: strings.Repeat("x", 1025), Keyed: api.Keyed{Key: "k"}}, api.CodeParams},
		"more arguments than people see": {sheetOf(agent.Kernel{}), api.SpawnParams{Args: []string{strings.Repeat("x", 8193)}, Keyed: api.Keyed{Key: "k"}}, api.CodeParams},
		"a child that may start others":  {sheetOf(agent.Kernel{Grants: []string{"spawn:other"}}), keyed("k"), api.CodeDenied},
	} {
		f := asksForChildren(t, c.sheet)
		err := <-f.spawning(c.p)
		if err == nil || api.ErrorOf(err).Code != c.code {
			t.Errorf("%s: %v", name, err)
		}
		f.asked(0)
	}
	f := asksForChildren(t, sheetOf(agent.Kernel{}))
	ended := f.spawning(keyed("k"))
	q := f.asked(1)[0]
	_, err := f.responds(1001, yes(q))
	wantCode(t, err, api.CodeDenied) // neither the owner nor root
	f.runs.refuse = api.Failure(api.CodeDenied, "", "beyond the ceiling")
	_, err = f.responds(1000, yes(q))
	must(t, err)
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "beyond the ceiling") {
		t.Error(err)
	}
	f.waitQueued(0)
}

// A question that nothing answers ends as a no, and so does one that the agent takes back; a run that ends takes the call
// with it.
func TestAChildsQuestionEnds(t *testing.T) {
	t.Parallel()
	f := asksForChildren(t, sheetOf(agent.Kernel{}))
	ended := f.spawning(keyed("k"))
	f.asked(1)
	f.clock.Add(3601)
	f.alarm.set(f.engine.Now())
	wantCode(t, <-ended, api.CodeDenied)
	other := keyed("l")
	other.Args = []string{"x"}
	ended = f.spawning(other)
	_, err := f.asAgent(agents.ApprovalCancel.Name, api.ApprovalCancelParams{ID: f.asked(1)[0].ID})
	must(t, err)
	wantCode(t, <-ended, api.CodeDenied)
	other.Key, other.Args = "m", []string{"y"}
	f.spawning(other)
	q := f.asked(1)[0]
	f.clock.Add(1)
	f.ended(agent.RunEnded)
	f.asked(0)
	_, err = f.responds(1000, yes(q))
	wantCode(t, err, api.CodeConflict)
	f.waitQueued(0)
}

// The question, the answer and what was answered survive a restart between any two of them: it is done once.
func TestAChildSurvivesRestarts(t *testing.T) {
	t.Parallel()
	f := asksForChildren(t, sheetOf(agent.Kernel{}))
	ended := f.spawning(keyed("k"))
	q := f.asked(1)[0]
	f.close()
	wantCode(t, <-ended, api.CodeBusy)
	f.open()
	_, err := f.responds(1000, yes(q)) // no supervisor is attached yet
	must(t, err)
	f.close()
	f.open()
	f.waitQueued(0)
	f.attach(false)
	f.waitQueued(1)
	must(t, <-f.spawning(keyed("k")))
	f.close()
	f.open()
	f.attach(false)
	must(t, <-f.spawning(keyed("k")))
	f.waitQueued(1)
}
