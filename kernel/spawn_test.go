package kernel

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/service"
	"clove.run/clove/kernel/spawn"
	"clove.run/clove/policies"
	"clove.run/clove/store"
)

// fakeRuns are the runs of a test, as cloved has them in its other store.
type fakeRuns struct {
	owner agent.Owner

	mu        sync.Mutex // guards the following
	runs      map[agent.ID]agent.Run
	queued    []agent.ID
	ends      map[agent.ID]*spawn.End
	signals   []string
	suspended []agent.ID
	packed    map[agent.ID]bool
	inputs    map[agent.ID]string
	refuse    error         // by Check
	stuck     bool          // Queue fails as where the store is full
	slow      bool          // what is queued waits, as for memory
	idle      chan agent.ID // runs that were asked to end because they are idle; nil: the test has none
}

func (f *fakeRuns) EndIdle(id agent.ID) error {
	f.idle <- id
	return nil
}

func (f *fakeRuns) Get(id agent.ID) (agent.Run, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	run, found := f.runs[id]
	return run, found
}

func (f *fakeRuns) Admit(context.Context, agent.Spec, []agent.ManifestFile) (agent.Owner, error) {
	return f.owner, nil
}

func (f *fakeRuns) Check(context.Context, agent.Spec, agent.Owner, []agent.ManifestFile) error {
	return f.refuse
}
func (f *fakeRuns) Beneath(context.Context, agent.Owner, string, string) bool { return true }

func (f *fakeRuns) Pack(_ context.Context, _ agent.Run, child agent.ID, _ []api.SpawnFile, _ int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.packed[child] = true
	return nil
}

func (f *fakeRuns) Give(id agent.ID, input []byte, file string) error {
	if file != "" {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		input = append(input, content...)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.inputs == nil {
		f.inputs = map[agent.ID]string{}
	}
	f.inputs[id] = string(input)
	return nil
}

func (f *fakeRuns) Drop(child agent.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.packed, child)
}

func (*fakeRuns) Fetch(context.Context, agent.Run, api.FetchParams) error { return nil }

func (f *fakeRuns) Programs() string { return "/usr/lib/clove" }

func (f *fakeRuns) Collect(_ context.Context, to agent.Run, from agent.ID, p api.CollectParams) (api.CollectResult, error) {
	return api.CollectResult{Files: 1, Left: []api.CollectLeft{{Path: agent.RawString(p.Path), Why: string(from)}}}, nil
}

func (f *fakeRuns) Queue(run agent.Run) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stuck {
		return api.Failure(api.CodeInternal, "", "the disk is full")
	}
	if _, found := f.runs[run.Spec.ID]; !found {
		run.State = agent.StateRunning
		run.Started = run.Created
		if f.slow {
			run.State, run.Started = agent.StateQueued, time.Time{}
		}
		f.runs[run.Spec.ID], f.queued = run, append(f.queued, run.Spec.ID)
	}
	return nil
}

func (f *fakeRuns) Ended(id agent.ID) *spawn.End {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ends[id]
}

func (f *fakeRuns) Remove(id agent.ID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.runs, id)
	return nil
}

func (f *fakeRuns) Suspend(id agent.ID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.suspended = append(f.suspended, id)
	return nil
}

func (f *fakeRuns) Signal(id agent.ID, signal, reason string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.signals = append(f.signals, strings.TrimSpace(f.runs[id].Spec.Name[:6]+" "+signal+" "+reason))
	return nil
}

func (f *fakeRuns) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.queued)
}

// family is a rig whose run may start agents.
type family struct {
	*rig
	runs *fakeRuns
}

// sheetOf is a spec as a manifest has it: within that of the parent of newFamily.
func sheetOf(has agent.Kernel) agent.Spec {
	s := policies.Standard()
	s.Command, s.Network, s.Kernel = agent.RawStrings{"/bin/true"}, agent.NetworkNone, has
	s.User, s.Dir = agent.User{Name: "agent", UID: 1000, GID: 1000, Home: "/home/agent"}, "/workspace"
	s.Limits.MemoryBytes, s.Limits.MemorySwapBytes, s.Limits.Pids, s.Limits.DiskBytes, s.Limits.ShmBytes = 64<<20, 64<<20, 64, 64<<20, 16<<20
	s.Detached = true
	return s
}

// newFamily adds a manifest worker, which a parent with these grants and budgets may start.
func newFamily(t *testing.T, sheet agent.Spec, has agent.Kernel) *family {
	t.Helper()
	has.Grants = append([]string{"spawn:worker"}, has.Grants...)
	parent := sheetOf(has)
	parent.ID, parent.Name = agent.NewID(), "lead"
	parent.Limits.MemoryBytes, parent.Limits.MemorySwapBytes, parent.Limits.Pids = 256<<20, 256<<20, 256
	parent.Limits.DiskBytes = 1 << 30
	parent.Files.Binds = []agent.Bind{{Source: "/srv/w", Target: "/srv/w"}}
	run := agent.Run{Spec: parent, Owner: agent.Owner{UID: 1000, GID: 1000}, State: agent.StateRunning, Started: time.Unix(1_800_000_000, 0)}
	f := &family{runs: &fakeRuns{owner: run.Owner, runs: map[agent.ID]agent.Run{parent.ID: run}, ends: map[agent.ID]*spawn.End{}, packed: map[agent.ID]bool{}}}
	f.rig = &rig{t: t, dir: t.TempDir(), run: run, children: f.runs, manifests: new(sync.Map), runs: new(sync.Map)}
	f.clock.Store(1_800_000_000)
	f.open()
	f.add("worker", sheet)
	f.attach(true)
	return f
}

func (f *family) add(name string, sheet agent.Spec) api.AddedManifest {
	f.t.Helper()
	sheet.ID, sheet.Name = "", ""
	added, err := asks[api.ManifestResult](f.rig, 1000, methods.ManifestAdd.Name, api.ManifestAddParams{Name: name, Spec: sheet})
	must(f.t, err)
	return added.Manifest
}

func (f *family) ask(p api.SpawnParams) (api.Child, error) {
	f.t.Helper()
	if p.Manifest == "" {
		p.Manifest = "worker"
	}
	text, err := f.asAgent(agents.AgentSpawn.Name, p)
	var result api.SpawnResult
	if err == nil {
		must(f.t, json.Unmarshal(text, &result))
	}
	return result.Child, err
}

func (f *family) spawn(p api.SpawnParams) api.Child {
	f.t.Helper()
	child, err := f.ask(p)
	must(f.t, err)
	return child
}

// queued waits until a child is queued, and returns it.
func (f *family) queued(id agent.ID) agent.Run {
	f.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if run, found := f.runs.Get(id); found {
			return run
		}
	}
	f.t.Fatalf("%s is not queued", id)
	return agent.Run{}
}

// as is a call of the agent of another run. One that waits for what never comes fails.
func (f *family) as(run agent.Run, method string, params any) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return f.Call(ctx, service.Caller{Run: run, Agent: true, UID: run.Owner.UID}, service.Request{Method: method, Text: encode(params)})
}

// end ends a child.
func (f *family) end(id agent.ID, end spawn.End) {
	f.t.Helper()
	f.runs.mu.Lock()
	run := f.runs.runs[id]
	run.State = agent.StateEnded
	f.runs.runs[id], f.runs.ends[id] = run, &end
	f.runs.mu.Unlock()
	must(f.t, f.Happened(agent.RunEvent{Time: f.config.Clock(), Kind: agent.RunEnded, ID: id, Name: run.Spec.Name, Owner: run.Owner, Status: end.Record.Status}, ""))
	_, err := f.asAgent(agents.AgentWait.Name, api.ChildParams{Child: string(id)})
	must(f.t, err)
}

func exited(code int) spawn.End {
	return spawn.End{Record: agent.Record{Status: agent.StatusExited, ExitCode: code, Command: agent.RawStrings{"secret"}}, Output: "bye\n"}
}

// A child is queued below its parent, with its identity, its deadline and what the request names.
func TestAChildIsQueued(t *testing.T) {
	t.Parallel()
	sheet := sheetOf(agent.Kernel{Grants: []string{"tool:web"}, Budgets: []string{"reviews=10"}})
	sheet.Env = []string{"A=1", "CLOVE_ID=none"}
	f := newFamily(t, sheet, agent.Kernel{Grants: []string{"tool:*"}, Budgets: []string{"reviews=100", "children=2"}})
	child := f.spawn(api.SpawnParams{Name: "first", Args: []string{"x"}, Env: []string{"A=2", "B=3"}, Limits: api.SpawnLimits{MemoryBytes: 32 << 20, TimeoutMS: 5000}, Budgets: []string{"reviews=5"}})
	run := f.queued(child.ID)
	spec := run.Spec
	if run.Parent != f.run.Spec.ID || len(run.Above) != 1 || run.Above[0].Name != "lead" || run.Owner != f.run.Owner {
		t.Errorf("%+v", run)
	}
	if !slices.Equal(spec.Command, []string{"/bin/true", "x"}) || spec.Limits.MemoryBytes != 32<<20 || spec.Limits.MemorySwapBytes != 32<<20 || spec.Limits.WallClock != 5*time.Second {
		t.Errorf("%+v", spec)
	}
	if !strings.HasPrefix(spec.Name, "worker-") || !slices.Contains(spec.Env, "A=2") || !slices.Contains(spec.Env, "B=3") || !slices.Contains(spec.Env, "CLOVE_ID="+string(child.ID)) {
		t.Errorf("%s %q", spec.Name, spec.Env)
	}
	if !slices.Equal(spec.Kernel.Budgets, []string{"reviews=5"}) || child.Name != "first" || child.Run != spec.Name {
		t.Errorf("%+v %+v", spec.Kernel, child)
	}
	// Its grants are derived when it starts to be, not by its start.
	must(t, f.Attach(context.Background(), run, true, func(api.Standing) {}))
	held := answerOf[api.GrantListResult](t)(f.as(run, agents.GrantList.Name, api.Nothing{}))
	if len(held.Grants) != 1 || held.Grants[0].Grant != "tool:web" || held.Grants[0].Giver != string(f.run.Spec.ID) || held.Grants[0].Parent == "" {
		t.Errorf("%+v", held.Grants)
	}
	// A revoked right of the parent's is one of the child's.
	for text, g := range f.grants() {
		if text == "tool:*" {
			_, err := f.asUser(1000, agents.GrantRevoke.Name, api.GrantRevokeParams{ID: g.ID})
			must(t, err)
		}
	}
	if held := answerOf[api.GrantListResult](t)(f.as(run, agents.GrantList.Name, api.Nothing{})); len(held.Grants) != 0 {
		t.Errorf("%+v", held.Grants)
	}
}

// A child may have clove's own loop, which its parent does not see, and start again when that does not.
func TestWhatAChildMayHaveBesides(t *testing.T) {
	t.Parallel()
	own := sheetOf(agent.Kernel{})
	own.Files.Binds = []agent.Bind{{Source: "/usr/lib/clove/clove-loop", Target: "/opt/clove/clove-loop", ReadOnly: true}}
	own.Restart.Policy = agent.RestartAlways
	if _, err := newFamily(t, own, agent.Kernel{}).ask(api.SpawnParams{}); err != nil {
		t.Error(err)
	}
}

// What a request makes wider than the manifest, or the child than its parent, is refused, and nothing is
// left. The control is the same request without the field.
func TestNoChildIsWider(t *testing.T) {
	t.Parallel()
	sheet := sheetOf(agent.Kernel{Grants: []string{"tool:web"}, Budgets: []string{"reviews=10"}})
	for name, c := range map[string]struct {
		change func(*agent.Spec)
		asked  api.SpawnParams
		code   api.Code
		text   string
	}{
		"more memory than the manifest":     {asked: api.SpawnParams{Limits: api.SpawnLimits{MemoryBytes: 65 << 20}}, code: api.CodeDenied, text: "limits.memory_bytes"},
		"less than no memory":               {asked: api.SpawnParams{Limits: api.SpawnLimits{MemoryBytes: -1}}, code: api.CodeParams},
		"a grant that the manifest lacks":   {asked: api.SpawnParams{Grants: []string{"tool:write"}}, code: api.CodeDenied, text: "tool:write"},
		"a wider grant than the manifest's": {asked: api.SpawnParams{Grants: []string{"tool:*"}}, code: api.CodeDenied, text: "tool:*"},
		"a larger budget":                   {asked: api.SpawnParams{Budgets: []string{"reviews=11"}}, code: api.CodeDenied, text: "reviews=11"},
		"another period":                    {asked: api.SpawnParams{Budgets: []string{"reviews=1/day"}}, code: api.CodeDenied, text: "reviews"},
		"no budget":                         {asked: api.SpawnParams{Budgets: []string{"reviews"}}, code: api.CodeParams},
		"another network":                   {asked: api.SpawnParams{Network: "host"}, code: api.CodeParams},
		"a variable of clove's":             {asked: api.SpawnParams{Env: []string{"CLOVE_AGENT_SOCKET=/x"}}, code: api.CodeParams},
		"instructions for a program":        {asked: api.SpawnParams{Instructions: "be brief"}, code: api.CodeParams},
		"another manifest":                  {asked: api.SpawnParams{Manifest: "other"}, code: api.CodeDenied, text: "spawn:worker"},
		"a pattern for a manifest":          {asked: api.SpawnParams{Manifest: "*"}, code: api.CodeDenied},
		"more memory than the parent":       {change: func(s *agent.Spec) { s.Limits.MemoryBytes, s.Limits.MemorySwapBytes = 512<<20, 512<<20 }, code: api.CodeDenied, text: "limits.memory_bytes"},
		"a network that the parent lacks":   {change: func(s *agent.Spec) { s.Network = agent.NetworkPublic }, code: api.CodeDenied, text: "network"},
		"a mount that the parent lacks":     {change: func(s *agent.Spec) { s.Files.Binds = []agent.Bind{{Source: "/srv/x", Target: "/x"}} }, code: api.CodeDenied, text: "files.binds.source"},
		"a mount that the parent could swap": {change: func(s *agent.Spec) {
			s.Files.Binds = []agent.Bind{{Source: "/srv/w/sub", Target: "/srv/w/sub", ReadOnly: true}}
		}, code: api.CodeDenied, text: "could put another file at /srv/w/sub"},
		"no filter":                           {change: func(s *agent.Spec) { s.Seccomp.Profile = agent.SeccompUnconfined }, code: api.CodeDenied, text: "seccomp"},
		"a command for the host":              {change: func(s *agent.Spec) { s.Kernel.OnWarn = "rm" }, code: api.CodeDenied, text: "kernel.on_warn"},
		"a grant that the parent lacks":       {change: func(s *agent.Spec) { s.Kernel.Grants = append(s.Kernel.Grants, "state:/x") }, code: api.CodeDenied, text: "state:/x"},
		"files that the parent does not keep": {change: func(s *agent.Spec) { s.KeepFiles = true }, code: api.CodeDenied, text: "keep_files"},
		"two of them":                         {change: func(s *agent.Spec) { s.KeepFiles, s.Network = true, agent.NetworkPublic }, code: api.CodeDenied, text: "; keep_files: "},
		"clove's own loop, writable": {change: func(s *agent.Spec) {
			s.Files.Binds = []agent.Bind{{Source: "/usr/lib/clove/clove-loop", Target: "/opt/clove/clove-loop"}}
		}, code: api.CodeDenied, text: "files.binds.source"},
		"what its owner may not start any more": {code: api.CodeDenied, text: "the ceiling"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := sheet
			own.Kernel.Grants = slices.Clone(sheet.Kernel.Grants)
			if c.change != nil {
				c.change(&own)
			}
			f := newFamily(t, own, agent.Kernel{Grants: []string{"tool:*"}})
			if c.text == "the ceiling" {
				f.runs.refuse = api.Failure(api.CodeDenied, "", "the ceiling forbids it")
			}
			_, err := f.ask(c.asked)
			wantCode(t, err, c.code)
			if err != nil && !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v does not name %s", err, c.text)
			}
			if f.runs.count() != 0 {
				t.Error("a run is queued")
			}
			if left := answerOf[api.ChildListResult](t)(f.asAgent(agents.AgentList.Name, api.Nothing{})); len(left.Children) != 0 {
				t.Errorf("%+v", left)
			}
			if l := f.line("children"); l.Reserved != 0 {
				t.Errorf("a place is taken: %+v", l)
			}
			f.runs.refuse = nil
			if c.change == nil {
				f.queued(f.spawn(api.SpawnParams{}).ID) // the control
			}
		})
	}
}

// A child with fewer grants has them taken, and keeps its socket.
func TestAChildWithoutItsGrants(t *testing.T) {
	t.Parallel()
	f := newFamily(t, sheetOf(agent.Kernel{Grants: []string{"tool:web", "spawn:worker"}, SpawnDepth: 1}), agent.Kernel{Grants: []string{"tool:*"}, SpawnDepth: 2})
	for _, c := range []struct {
		grants []string
		want   int
	}{{nil, 2}, {[]string{"tool:web"}, 1}, {[]string{}, 0}} {
		run := f.queued(f.spawn(api.SpawnParams{Grants: c.grants}).ID)
		must(t, f.Attach(context.Background(), run, true, func(api.Standing) {}))
		held := answerOf[api.GrantListResult](t)(f.as(run, agents.GrantList.Name, api.Nothing{}))
		if len(held.Grants) != c.want || !run.Spec.Kernel.HasSocket() || run.Spec.Kernel.HasChildren() != (c.want == 2) {
			t.Errorf("%q: %+v, %+v", c.grants, held.Grants, run.Spec.Kernel)
		}
	}
}

// A grant holds the manifest that its name meant when it was given.
func TestAGrantHoldsItsManifest(t *testing.T) {
	t.Parallel()
	f := newFamily(t, sheetOf(agent.Kernel{}), agent.Kernel{})
	first := f.spawn(api.SpawnParams{})
	changed := sheetOf(agent.Kernel{})
	changed.Command = agent.RawStrings{"/bin/false"}
	f.clock.Add(1)
	if second := f.add("worker", changed); second.Digest == first.Digest {
		t.Fatal("two specs have one digest")
	}
	child := f.spawn(api.SpawnParams{})
	if run := f.queued(child.ID); child.Digest != first.Digest || run.Spec.Command[0] != "/bin/true" {
		t.Errorf("%+v %q", child, run.Spec.Command)
	}
	// The control: a grant that is given now holds the new one.
	_, err := f.asUser(1000, methods.GrantGive.Name, api.GrantGiveParams{Grant: "spawn:worker"})
	must(t, err)
	if again := f.add("worker", sheetOf(agent.Kernel{})); again.Digest != first.Digest {
		t.Errorf("the same spec has another digest: %+v", again)
	}
	_, err = asks[api.ManifestRemoveResult](f.rig, 1000, methods.ManifestRemove.Name, api.ManifestNameParams{Name: "worker"})
	must(t, err)
	_, err = f.ask(api.SpawnParams{})
	wantCode(t, err, api.CodeNotFound)
}

// A digest is that of what is meant: the order of variables and their values do not count, all else does.
func TestDigestsOfManifests(t *testing.T) {
	t.Parallel()
	f := newFamily(t, sheetOf(agent.Kernel{}), agent.Kernel{})
	digest := func(change func(*agent.Spec)) string {
		s := sheetOf(agent.Kernel{})
		s.Env = []string{"A=1", "B=2"}
		change(&s)
		return f.add("digest", s).Digest
	}
	same := digest(func(*agent.Spec) {})
	if other := digest(func(s *agent.Spec) { s.Env = []string{"B=3", "A=1"} }); other != same {
		t.Error("the values of variables count")
	}
	seen := map[string]string{same: "none"}
	for name, change := range map[string]func(*agent.Spec){
		"a variable":     func(s *agent.Spec) { s.Env = append(s.Env, "C=1") },
		"a command":      func(s *agent.Spec) { s.Command = agent.RawStrings{"/bin/true", ""} },
		"split":          func(s *agent.Spec) { s.Command = agent.RawStrings{"/bin/tru", "e"} },
		"a grant":        func(s *agent.Spec) { s.Kernel.Grants = []string{"tool:a"} },
		"two grants":     func(s *agent.Spec) { s.Kernel.Grants = []string{"tool:a", "tool:b"} },
		"memory":         func(s *agent.Spec) { s.Limits.MemoryBytes++ },
		"a bind":         func(s *agent.Spec) { s.Files.Binds = []agent.Bind{{Source: "/srv", Target: "/srv"}} },
		"the other bind": func(s *agent.Spec) { s.Files.Binds = []agent.Bind{{Source: "/srv", Target: "/srv", ReadOnly: true}} },
	} {
		d := digest(change)
		if before, double := seen[d]; double {
			t.Errorf("%s and %s have one digest", name, before)
		}
		seen[d] = name
	}
}

// A child's end frees its place, is told, and is what a call that waits returns, once.
func TestTheEndOfAChild(t *testing.T) {
	t.Parallel()
	f := newFamily(t, sheetOf(agent.Kernel{Socket: true}), agent.Kernel{Budgets: []string{"children=1"}})
	standings := f.attach(false)
	child := f.spawn(api.SpawnParams{Name: "one"})
	run := f.queued(child.ID)
	_, err := f.ask(api.SpawnParams{Name: "two"})
	wantCode(t, err, api.CodeBudget)
	type answer struct {
		end api.ChildEnd
		err error
	}
	answers := make(chan answer, 2)
	for _, name := range []string{"one", string(child.ID)} {
		go func() {
			var a answer
			text, err := f.asAgent(agents.AgentWait.Name, api.ChildParams{Child: name})
			if a.err = err; err == nil {
				a.err = json.Unmarshal(text, &a.end)
			}
			answers <- a
		}()
	}
	_, err = f.as(run, agents.AgentResult.Name, api.ResultParams{Result: json.RawMessage(`{"found": 3}`)})
	must(t, err)
	_, err = f.as(run, agents.AgentResult.Name, api.ResultParams{Result: json.RawMessage(`{"found": 4}`)})
	wantCode(t, err, api.CodeConflict)
	_, err = f.as(run, agents.AgentResult.Name, api.ResultParams{Result: json.RawMessage(`"` + strings.Repeat("x", api.BodyMost) + `"`)})
	wantCode(t, err, api.CodeTooLarge)
	select {
	case a := <-answers:
		t.Fatalf("answered before the end: %+v", a)
	case <-time.After(50 * time.Millisecond):
	}
	f.end(child.ID, exited(3))
	for range 2 {
		a := <-answers
		must(t, a.err)
		if a.end.Record.ExitCode != 3 || a.end.Output != "bye\n" || string(a.end.Result) != `{"found":3}` || a.end.Record.Command != nil || a.end.Child.Status != "exited" {
			t.Errorf("%+v", a.end)
		}
	}
	noted := func() bool {
		for {
			select {
			case s := <-standings:
				if slices.ContainsFunc(s.Notices, func(n api.Notice) bool { return n.Method == api.NoteChildEnded }) {
					return true
				}
			case <-time.After(patience):
				return false
			}
		}
	}
	if !noted() {
		t.Error("the parent is not told")
	}
	f.queued(f.spawn(api.SpawnParams{Name: "one"}).ID) // its place and its name are free
}

// What a child has given is there also where the run is removed with its end.
func TestTheResultOfARemovedChild(t *testing.T) {
	t.Parallel()
	f := newFamily(t, sheetOf(agent.Kernel{Socket: true}), agent.Kernel{})
	child := f.queued(f.spawn(api.SpawnParams{}).ID)
	_, err := f.as(child, agents.AgentResult.Name, api.ResultParams{Result: json.RawMessage(`7`)})
	must(t, err)
	f.end(child.Spec.ID, exited(0))
	must(t, f.Happened(agent.RunEvent{Time: f.config.Clock(), Kind: agent.RunRemoved, ID: child.Spec.ID, Name: child.Spec.Name, Owner: child.Owner}, ""))
	end := answerOf[api.ChildEnd](t)(f.asAgent(agents.AgentWait.Name, api.ChildParams{Child: string(child.Spec.ID)}))
	if string(end.Result) != "7" {
		t.Errorf("%+v", end)
	}
}

// An agent reaches what is below it, and nothing else.
func TestOnlyDescendantsAreReached(t *testing.T) {
	t.Parallel()
	sheet := sheetOf(agent.Kernel{Grants: []string{"spawn:worker"}})
	f := newFamily(t, sheet, agent.Kernel{SpawnDepth: 1})
	child := f.queued(f.spawn(api.SpawnParams{Name: "a"}).ID)
	f.clock.Add(1)
	other := f.queued(f.spawn(api.SpawnParams{Name: "b"}).ID)
	must(t, f.Attach(context.Background(), child, true, func(api.Standing) {}))
	grand := answerOf[api.SpawnResult](t)(f.as(child, agents.AgentSpawn.Name, api.SpawnParams{Manifest: "worker"})).Child
	lowest := f.queued(grand.ID)
	must(t, f.Attach(context.Background(), lowest, true, func(api.Standing) {}))
	_, err := f.as(lowest, agents.AgentSpawn.Name, api.SpawnParams{Manifest: "worker"})
	if wantCode(t, err, api.CodeDenied); err != nil && !strings.Contains(err.Error(), "levels") { // the control is the level above
		t.Error(err)
	}
	if tree := answerOf[api.ChildListResult](t)(f.asAgent(agents.AgentTree.Name, api.Nothing{})); len(tree.Children) != 3 || tree.Children[1].Parent != child.Spec.ID {
		t.Errorf("%+v", tree)
	}
	for name, c := range map[string]struct {
		by   agent.Run
		of   string
		code api.Code // 0: reached
	}{
		"a child by its name":      {f.run, "a", 0},
		"a child by its run":       {f.run, child.Spec.Name, 0},
		"a grandchild by its id":   {f.run, string(grand.ID), 0},
		"a grandchild by its name": {f.run, grand.Run, api.CodeNotFound},
		"itself":                   {f.run, string(f.run.Spec.ID), api.CodeNotFound},
		"no run":                   {f.run, "", api.CodeNotFound},
		"a run that is not there":  {f.run, string(agent.NewID()), api.CodeNotFound},
		"its parent":               {child, string(f.run.Spec.ID), api.CodeNotFound},
		"a sibling":                {child, string(other.Spec.ID), api.CodeNotFound},
		"a sibling by its name":    {child, "b", api.CodeNotFound},
	} {
		for _, signal := range []string{"USR1", "POLICY"} {
			_, err := f.as(c.by, agents.AgentSignal.Name, api.ChildSignalParams{ChildParams: api.ChildParams{Child: c.of}, Signal: signal})
			if c.code == 0 {
				must(t, err)
			} else {
				wantCode(t, err, c.code)
			}
			if c.code != 0 && c.of != "" {
				_, err = f.as(c.by, agents.AgentWait.Name, api.ChildParams{Child: c.of})
				wantCode(t, err, c.code)
			}
		}
		_ = name
	}
	_, err = f.asAgent(agents.AgentSignal.Name, api.ChildSignalParams{ChildParams: api.ChildParams{Child: "a"}, Signal: "SEGV"})
	wantCode(t, err, api.CodeParams)
	f.close()
	if len(f.runs.signals) != 6 {
		t.Errorf("%q", f.runs.signals)
	}
}

// A signal that is meant to end a child is the cause of its end, by the id that its entry has; the control is one that
// is not.
func TestASignalIsTheCauseOfAnEnd(t *testing.T) {
	t.Parallel()
	for _, signal := range []string{"TERM", "KILL", "POLICY", "BUDGET", "USR1", "STOP"} {
		f := newFamily(t, sheetOf(agent.Kernel{Grants: []string{"spawn:worker"}}), agent.Kernel{})
		child := f.queued(f.spawn(api.SpawnParams{Name: "a"}).ID)
		_, err := f.asAgent(agents.AgentSignal.Name, api.ChildSignalParams{ChildParams: api.ChildParams{Child: "a"}, Signal: signal})
		must(t, err)
		want := ""
		for _, e := range f.entries() {
			if e.Method == agents.AgentSignal.Name && signal != "USR1" && signal != "STOP" {
				want = e.Correlation
			}
		}
		f.close()
		cause, caused := f.caused.Load(child.Spec.ID)
		if caused != (want != "") || caused && cause != want {
			t.Errorf("%s: %v, want %q", signal, cause, want)
		}
	}
}

// A spawn that was answered happens once, whenever cloved is killed behind the answer.
func TestAnAnsweredSpawnHappens(t *testing.T) {
	t.Parallel()
	f := newFamily(t, sheetOf(agent.Kernel{}), agent.Kernel{})
	f.runs.stuck = true
	first := f.spawn(api.SpawnParams{Keyed: api.Keyed{Key: "k"}})
	again := f.spawn(api.SpawnParams{Keyed: api.Keyed{Key: "k"}})
	if first.ID != again.ID {
		t.Fatalf("a repeated key has another child: %s, %s", first.ID, again.ID)
	}
	f.close()
	if f.runs.count() != 0 {
		t.Fatal("control: it is queued")
	}
	f.runs.stuck = false
	f.open()
	must(t, f.RecoverChildren())
	must(t, f.RecoverChildren())
	if f.queued(first.ID); f.runs.count() != 1 {
		t.Errorf("%d are queued", f.runs.count())
	}
	// An end that no cloved has seen is found, too.
	f.close()
	f.runs.ends[first.ID] = new(exited(0))
	f.open()
	must(t, f.RecoverChildren())
	must(t, f.Attach(context.Background(), f.run, false, func(api.Standing) {}))
	end := answerOf[api.ChildEnd](t)(f.asAgent(agents.AgentWait.Name, api.ChildParams{Child: string(first.ID)}))
	if end.Record.Status != agent.StatusExited {
		t.Errorf("%+v", end)
	}
}

// Of 64 spawns at once as many succeed as there are places. The control is the number without a bound.
func TestManySpawnsAtOnce(t *testing.T) {
	t.Parallel()
	const places = 5
	sheet := sheetOf(agent.Kernel{})
	sheet.Limits.DiskBytes = 8 << 20
	f := newFamily(t, sheet, agent.Kernel{Budgets: []string{fmt.Sprintf("children=%d", places)}})
	var refused, started atomic.Int64
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			if _, err := f.ask(api.SpawnParams{}); err == nil {
				started.Add(1)
			} else if api.ErrorOf(err).Code == api.CodeBudget {
				refused.Add(1)
			} else {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if started.Load() != places || refused.Load() != 64-places {
		t.Errorf("%d started, %d refused", started.Load(), refused.Load())
	}
	_, err := f.asUser(1000, methods.BudgetRaise.Name, api.BudgetRaiseParams{Amounts: map[string]int64{"children": 64}})
	if err == nil {
		for range 64 - places {
			f.spawn(api.SpawnParams{})
		}
	} else {
		t.Error(err)
	}
	spawned := 0
	for _, e := range f.entries() {
		if e.Method == agents.AgentSpawn.Name && e.Verdict == audit.VerdictAllow {
			spawned++
		}
	}
	if spawned != 64 {
		t.Errorf("%d entries", spawned)
	}
}

// The disks of live children are together no more than their parent's. A manifest that says nothing of it gets an
// equal share.
func TestTheDiskOfChildren(t *testing.T) {
	t.Parallel()
	usual := sheetOf(agent.Kernel{})
	usual.Limits.DiskBytes = agent.UsualDiskBytes
	f := newFamily(t, usual, agent.Kernel{Budgets: []string{"children=3"}})
	first := f.spawn(api.SpawnParams{})
	if run := f.queued(first.ID); run.Spec.Limits.DiskBytes != 256<<20 {
		t.Errorf("a quarter of 1 GiB is %d", run.Spec.Limits.DiskBytes)
	}
	asks := api.SpawnParams{Limits: api.SpawnLimits{DiskBytes: 800 << 20}}
	_, err := f.ask(asks)
	wantCode(t, err, api.CodeDenied)
	if err == nil || !strings.Contains(err.Error(), "of 1GiB the live children leave 768MiB") {
		t.Errorf("%v", err)
	}
	if l := f.line("children"); l.Reserved != 1 {
		t.Errorf("a place is taken: %+v", l)
	}
	f.end(first.ID, exited(0))
	if run := f.queued(f.spawn(asks).ID); run.Spec.Limits.DiskBytes != 800<<20 {
		t.Errorf("%d", run.Spec.Limits.DiskBytes)
	}
}

// Files of a spawn that is refused are dropped.
func TestFilesOfARefusedSpawn(t *testing.T) {
	t.Parallel()
	f := newFamily(t, sheetOf(agent.Kernel{}), agent.Kernel{Budgets: []string{"children=1"}})
	files := []api.SpawnFile{{From: "/workspace/a", To: "/workspace/a"}}
	f.spawn(api.SpawnParams{Files: files})
	_, err := f.ask(api.SpawnParams{Files: files})
	wantCode(t, err, api.CodeBudget)
	f.runs.mu.Lock()
	defer f.runs.mu.Unlock()
	if len(f.runs.packed) != 1 {
		t.Errorf("%d spawns have files", len(f.runs.packed))
	}
}

// BenchmarkCheckBesideWaits is grant.check of an agent beside calls of its own that wait: the median of each
// kind of round, and their ratio. The rounds alternate, so that both meet the same machine.
func BenchmarkCheckBesideWaits(b *testing.B) {
	const waits = 100
	k, run := newBenched(b)
	c := service.Caller{Run: run, Agent: true}
	lives := spawn.Child{Parent: run.Spec.ID, ID: agent.NewID(), Above: []agent.ID{run.Spec.ID}, Name: "child"}
	must(b, k.engine.Update("children", func(tx *store.KernelTx) error { return spawn.Children.Put(tx, &lives) }))
	took := map[bool][]time.Duration{}
	for round := range 40 {
		beside := round%2 == 1
		ctx, cancel := context.WithCancel(b.Context())
		var all sync.WaitGroup
		for range waits {
			if beside {
				all.Go(func() {
					_, _ = k.Call(ctx, c, service.Request{Method: agents.AgentWait.Name, Text: []byte(`{"child":"child"}`)})
				})
			}
		}
		time.Sleep(20 * time.Millisecond) // they wait
		for range max(50, b.N/40) {
			began := time.Now()
			_, err := k.Call(b.Context(), c, service.Request{Method: agents.GrantCheck.Name, Text: []byte(`{"what":"tool:web"}`)})
			must(b, err)
			took[beside] = append(took[beside], time.Since(began))
		}
		cancel()
		all.Wait()
	}
	median := func(all []time.Duration) float64 { slices.Sort(all); return float64(all[len(all)/2]) }
	b.ReportMetric(median(took[false]), "p50-ns/alone")
	b.ReportMetric(median(took[true]), "p50-ns/beside")
	b.ReportMetric(median(took[true])/median(took[false]), "ratio")
}

// What a run has left in the queue ends with it, but for one whose children may go on.
func TestNoChildIsLeftInTheQueue(t *testing.T) {
	t.Parallel()
	for orphans, want := range map[string]int{"": 1, agent.OrphansKeep: 0} {
		f := newFamily(t, sheetOf(agent.Kernel{}), agent.Kernel{Orphans: orphans})
		first := f.spawn(api.SpawnParams{})
		f.queued(first.ID)
		f.end(f.queued(f.spawn(api.SpawnParams{}).ID).Spec.ID, exited(0)) // it has ended already
		must(t, f.Happened(agent.RunEvent{Time: f.config.Clock(), Kind: agent.RunEnded, ID: f.run.Spec.ID, Name: "lead", Owner: f.run.Owner, Status: agent.StatusExited}, ""))
		f.close()
		if len(f.runs.suspended) != want || want == 1 && f.runs.suspended[0] != first.ID {
			t.Errorf("%q: %v", orphans, f.runs.suspended)
		}
	}
}
