package kernel

import (
	"context"
	"encoding/json"
	"fmt"
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
	"clove.run/clove/kernel/lease"
	"clove.run/clove/kernel/service"
	"clove.run/clove/kernel/state"
	"clove.run/clove/store"
)

// allKeys are grants of every key that runs share.
var allKeys = []string{"state:/namespace:rw", "state:/name:rw"}

// where is the scope of a kind that the tests use.
func where(scope api.StateScope) api.StateWhere {
	if scope == api.StateName {
		return api.StateWhere{Name: "counter"}
	}
	return api.StateWhere{Scope: scope}
}

// keeper is a run that keeps keys.
type keeper struct {
	*rig
	run agent.Run
}

// another attaches a run beside the rig's.
func (r *rig) another(run agent.Run) keeper {
	r.t.Helper()
	must(r.t, r.Attach(context.Background(), run, true, func(api.Standing) {}))
	return keeper{r, run}
}

// calls ends a call that waits too long: of what is to be refused, or has happened.
func (k keeper) calls(method string, params any) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience/4)
	defer cancel()
	return k.Call(ctx, service.Caller{Run: k.run, Agent: true, UID: k.run.Owner.UID}, service.Request{Method: method, Text: encode(params)})
}

func (k keeper) set(scope api.StateScope, path, value string) uint64 {
	k.t.Helper()
	return answerOf[api.StateSetResult](k.t)(k.calls(agents.StateSet.Name, api.StateSetParams{StatePath: api.StatePath{StateWhere: where(scope), Path: path}, Value: json.RawMessage(value)})).Version
}

func (k keeper) get(scope api.StateScope, path string) api.StateResult {
	k.t.Helper()
	return answerOf[api.StateResult](k.t)(k.calls(agents.StateGet.Name, api.StateGetParams{StatePath: api.StatePath{StateWhere: where(scope), Path: path}}))
}

// paths returns all paths that a list has.
func (k keeper) paths(scope api.StateScope, path string) (all []string) {
	k.t.Helper()
	for after := ""; ; {
		part := answerOf[api.StateListResult](k.t)(k.calls(agents.StateList.Name, api.StateListParams{StateWhere: where(scope), Path: path, After: after}))
		for _, e := range part.Keys {
			all = append(all, e.Path)
		}
		if after = part.Next; after == "" {
			return all
		}
	}
}

// counted returns the keys of a scope and the bytes of their values, as they are stored. The scope must
// have counted the same.
func (k keeper) counted(of lease.Of) (kept, bytes int) {
	k.t.Helper()
	must(k.t, k.engine.Read(func(tx *store.KernelTx) error {
		s, err := state.Scopes.Get(tx, of.ID())
		must(k.t, err)
		all, err := state.Keys.Below(tx, of.ID()+"/")
		for _, key := range all {
			kept, bytes = kept+1, bytes+int(key.Bytes)
		}
		if kept > 0 && s == nil || s != nil && (s.Keys != kept || s.Bytes != bytes) {
			k.t.Errorf("%d keys of %d bytes, counted as %+v", kept, bytes, s)
		}
		return err
	}))
	return kept, bytes
}

func newKeeper(t *testing.T) keeper {
	t.Helper()
	r := newRig(t, agent.Kernel{Grants: allKeys, Namespace: "acme"})
	return keeper{r, r.run}
}

// A key has the value that was set last, also after a restart, and a list has the keys of a path by its
// parts.
func TestKeysAreKept(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	for _, scope := range []api.StateScope{"", api.StateName, api.StateNamespace} {
		first := k.set(scope, "plans/today", `{ "n": 1 }`)
		if second := k.set(scope, "plans/today", `{ "n": 2 }`); second <= first {
			t.Errorf("version %d after %d", second, first)
		}
		for _, path := range []string{"plans", "plans-old", "plans/b/c", "plansx/a"} {
			k.set(scope, path, `null`)
		}
	}
	k.close()
	k.open()
	k.attach(false)
	for _, scope := range []api.StateScope{api.StateRun, api.StateName, api.StateNamespace} {
		if got := k.get(scope, "plans/today"); string(got.Value) != `{"n":2}` || got.Bytes != 7 || got.Changed != k.config.Clock() {
			t.Errorf("%+v", got)
		}
		if got := k.get(scope, "plans"); string(got.Value) != "null" || got.Version == 0 {
			t.Errorf("%+v", got)
		}
		if got := k.paths(scope, "plans"); !slices.Equal(got, []string{"plans", "plans/b/c", "plans/today"}) {
			t.Errorf("%q", got)
		}
		if got := k.paths(scope, ""); len(got) != 5 {
			t.Errorf("%q", got)
		}
		gone := answerOf[api.StateDeleteResult](t)(k.calls(agents.StateDelete.Name, api.StateDeleteParams{StatePath: api.StatePath{StateWhere: where(scope), Path: "plans"}}))
		if got := k.get(scope, "plans"); gone.Version == 0 || got.Version != 0 || got.Value != nil {
			t.Errorf("%+v after %+v", got, gone)
		}
	}
}

// A version never comes twice, also where the scope was empty in between.
func TestVersionsOnlyGrow(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	last := uint64(0)
	for range 3 {
		version := k.set(api.StateRun, "a", "1")
		if version <= last {
			t.Errorf("%d after %d", version, last)
		}
		last = version
		_, err := k.calls(agents.StateDelete.Name, `{"path":"a"}`)
		must(t, err)
	}
}

// Runs of another owner, namespace or name see nothing, and get the answer of a key that there is not. The
// control is a run that shares the scope.
func TestKeysOfOthersAreNotThere(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	runs := map[string]agent.Run{}
	for name, of := range map[string]struct {
		uid             uint32
		namespace, name string
	}{"owner": {2000, "acme", "worker"}, "namespace": {1000, "acme/research", "worker"}, "above": {1000, "", "worker"}, "same": {1000, "acme", "worker"}} {
		run := newRun(of.uid, agent.Kernel{Grants: allKeys, Namespace: of.namespace})
		run.Spec.Name = of.name
		runs[name] = run
	}
	for name, run := range runs {
		other := k.another(run)
		for _, scope := range []api.StateScope{api.StateRun, api.StateName, api.StateNamespace} {
			miss := other.get(scope, "plan")
			version := k.set(scope, "plan", `"secret"`)
			got, list := other.get(scope, "plan"), other.paths(scope, "")
			shares := scope != api.StateRun && name == "same"
			switch {
			case shares && (string(got.Value) != `"secret"` || len(list) != 1):
				t.Errorf("%s, %s: %+v %q", name, scope, got, list)
			case !shares && (fmt.Sprint(got) != fmt.Sprint(miss) || got.Version != 0 || len(list) != 0):
				t.Errorf("%s, %s: %+v, a miss is %+v, %q", name, scope, got, miss, list)
			}
			if !shares { // what it does changes nothing here
				other.set(scope, "plan", `"other"`)
				_, err := other.calls(agents.StateDelete.Name, api.StateDeleteParams{StatePath: api.StatePath{StateWhere: where(scope), Path: "plan"}})
				must(t, err)
				if still := k.get(scope, "plan"); still.Version != version || string(still.Value) != `"secret"` {
					t.Errorf("%s, %s: %+v", name, scope, still)
				}
			}
			_, err := k.calls(agents.StateDelete.Name, api.StateDeleteParams{StatePath: api.StatePath{StateWhere: where(scope), Path: "plan"}})
			must(t, err)
		}
	}
}

// What no grant covers, and what is not sound, is refused, and nothing is kept. The controls are covered.
func TestKeysThatAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Grants: []string{"state:/namespace/plans:rw", "state:/name/counter/notes:ro"}})
	k := keeper{r, r.run}
	long := strings.Repeat("x", 257)
	for text, want := range map[string]api.Code{
		`state.set {"scope":"namespace","path":"plans","value":1}`:          0,
		`state.set {"scope":"namespace","path":"plans/a","value":1}`:        0,
		`state.set {"scope":"namespace","path":"plansx","value":1}`:         api.CodeDenied,
		`state.set {"scope":"namespace","path":"other","value":1}`:          api.CodeDenied,
		`state.set {"scope":"namespace","path":"plans/../other","value":1}`: api.CodeParams,
		`state.set {"scope":"namespace","path":"plans:ro","value":1}`:       api.CodeParams,
		`state.set {"name":"counter","path":"notes","value":1}`:             api.CodeDenied,
		`state.delete {"name":"counter","path":"notes"}`:                    api.CodeDenied,
		`state.get {"scope":"name","name":"counter","path":"notes"}`:        0,
		`state.get {"name":"counter","path":"notes"}`:                       0,
		`state.get {"name":"counter/notes","path":"a"}`:                     api.CodeParams,
		`state.get {"name":"count","path":"notes"}`:                         api.CodeDenied,
		`state.get {"name":"counter","path":"plans"}`:                       api.CodeDenied,
		`state.get {"scope":"name","path":"notes"}`:                         api.CodeParams,
		`state.get {"scope":"run","name":"counter","path":"notes"}`:         api.CodeParams,
		`state.get {"scope":"namespace","path":"notes"}`:                    api.CodeDenied,
		`state.list {"scope":"namespace"}`:                                  api.CodeDenied,
		`state.list {"scope":"namespace","path":"plans"}`:                   0,
		`state.watch {"scope":"namespace","path":"notes","version":0}`:      api.CodeDenied,
		`state.get {"scope":"namespace/plans","path":"a"}`:                  api.CodeParams,
		`state.get {"scope":"host","path":"a"}`:                             api.CodeParams,
		`state.set {"path":"a","value":1}`:                                  0,
		`state.set {"path":"a"}`:                                            api.CodeTooLarge,
		`state.set {"path":"","value":1}`:                                   api.CodeParams,
		`state.set {"path":"a/","value":1}`:                                 api.CodeParams,
		`state.set {"path":"/a","value":1}`:                                 api.CodeParams,
		`state.set {"path":"a//b","value":1}`:                               api.CodeParams,
		`state.set {"path":"a/./b","value":1}`:                              api.CodeParams,
		`state.set {"path":"a\u0000b","value":1}`:                           api.CodeParams,
		`state.set {"path":"a\nb","value":1}`:                               api.CodeParams,
		`state.set {"path":"` + long + `","value":1}`:                       api.CodeParams,
		`state.set {"path":"` + long[1:] + `","value":1}`:                   0,
		`state.set {"path":"a","value":1,"expires_ms":-1}`:                  api.CodeParams,
		`state.set {"path":"a","value":1,"version":7}`:                      api.CodeParams,
		`state.list {"after":"../b"}`:                                       api.CodeParams,
	} {
		method, params, _ := strings.Cut(text, " ")
		_, err := k.calls(method, params)
		if (err == nil) != (want == 0) || err != nil && api.ErrorOf(err).Code != want {
			t.Errorf("%.90s: %v, want %d", text, err, want)
		}
	}
	if all := k.paths(api.StateRun, ""); !slices.Equal(all, []string{"a", long[1:]}) {
		t.Errorf("%.200q", all)
	}
	if all := k.paths(api.StateNamespace, "plans"); !slices.Equal(all, []string{"plans", "plans/a"}) {
		t.Errorf("%q", all)
	}
}

// A grant for keys of a name means the same keys in a child of another name. The control has no grant.
func TestAGrantMeansTheSameKeysInAChild(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	k.set(api.StateName, "plan", "1")
	for text, want := range map[string]api.Code{"state:/name/counter/plan:ro": 0, "state:/namespace/plan:ro": api.CodeDenied} {
		run := childOf(k.run, "other", agent.Kernel{Namespace: "acme", Grants: []string{text}})
		started, err := k.start(run)
		must(t, err)
		child := keeper{started, run}
		for name, want := range map[string]api.Code{"counter": want, "other": api.CodeDenied} {
			_, err := child.calls(agents.StateGet.Name, api.StateGetParams{StatePath: api.StatePath{StateWhere: api.StateWhere{Name: name}, Path: "plan"}})
			if (err == nil) != (want == 0) || err != nil && api.ErrorOf(err).Code != want {
				t.Errorf("%s, %s: %v", text, name, err)
			}
		}
	}
}

// Of 64 callers that name the same version one wins each round. The control names none: all win.
func TestOneOfManyChangesAVersion(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	for _, conditional := range []bool{true, false} {
		for round := range 4 {
			version := k.get(api.StateNamespace, "turn").Version
			var won atomic.Int64
			var all sync.WaitGroup
			for i := range 64 {
				all.Go(func() {
					p := api.StateSetParams{StatePath: api.StatePath{StateWhere: where(api.StateNamespace), Path: "turn"}, Value: json.RawMessage(fmt.Sprint(i))}
					if conditional {
						p.IfVersion = &version
					}
					_, err := k.calls(agents.StateSet.Name, p)
					switch {
					case err == nil:
						won.Add(1)
					case api.ErrorOf(err).Code != api.CodeConflict || api.ErrorOf(err).Data.Rule != api.RuleState:
						t.Error(err)
					}
				})
			}
			all.Wait()
			if want := map[bool]int64{true: 1, false: 64}[conditional]; won.Load() != want {
				t.Errorf("round %d: %d win, want %d", round, won.Load(), want)
			}
		}
	}
	zero := uint64(0)
	for path, want := range map[string]api.Code{"turn": api.CodeConflict, "new": 0} {
		_, err := k.calls(agents.StateSet.Name, api.StateSetParams{StatePath: api.StatePath{StateWhere: where(api.StateNamespace), Path: path}, StateIf: api.StateIf{IfVersion: &zero}, Value: json.RawMessage("1")})
		if (err == nil) != (want == 0) {
			t.Errorf("%s: %v", path, err)
		}
		_, err = k.calls(agents.StateDelete.Name, api.StateDeleteParams{StatePath: api.StatePath{StateWhere: where(api.StateNamespace), Path: path}, StateIf: api.StateIf{IfVersion: &zero}})
		wantCode(t, err, api.CodeConflict)
	}
}

// A scope holds 1 024 keys and 16 MiB, and says so. Replacing is possible, and what is deleted or has
// expired makes room.
func TestScopesAreBounded(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	fill := func(scope api.StateScope, count int, value string, expires int64) {
		t.Helper()
		var all sync.WaitGroup
		for at := range 8 {
			all.Go(func() {
				for i := at; i < count; i += 8 {
					_, err := k.calls(agents.StateSet.Name, api.StateSetParams{StatePath: api.StatePath{StateWhere: where(scope), Path: fmt.Sprint(i)}, Value: json.RawMessage(value), ExpiresMS: expires})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
	}
	refused := func(scope api.StateScope, value string, want bool) {
		t.Helper()
		_, err := k.calls(agents.StateSet.Name, api.StateSetParams{StatePath: api.StatePath{StateWhere: where(scope), Path: "one-more"}, Value: json.RawMessage(value)})
		if (err != nil) != want || want && (api.ErrorOf(err).Code != api.CodeBusy || api.ErrorOf(err).Data.Rule != api.RuleState) {
			t.Errorf("%v", err)
		}
	}
	fill(api.StateRun, 1024, "1", 1000)
	refused(api.StateRun, "1", true)
	k.set(api.StateRun, "7", "2")
	k.clock.Add(1)
	refused(api.StateRun, "1", false)
	if all := k.paths(api.StateRun, ""); !slices.Equal(all, []string{"7", "one-more"}) {
		t.Errorf("%q", all)
	}
	large := `"` + strings.Repeat("x", api.BodyMost-2) + `"`
	fill(api.StateName, 16<<20/api.BodyMost, large, 0)
	refused(api.StateName, large, true)
	_, err := k.calls(agents.StateDelete.Name, `{"name":"counter","path":"3"}`)
	must(t, err)
	refused(api.StateName, large, false)
}

// A key that has expired is absent for every method. Changes remove such keys a part at a time, and count
// what is there.
func TestKeysExpire(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	for i := range 100 {
		_, err := k.calls(agents.StateSet.Name, fmt.Sprintf(`{"path":"gone/%d","value":1,"expires_ms":1000}`, i))
		must(t, err)
	}
	k.set(api.StateRun, "stays", "1")
	before := k.get(api.StateRun, "gone/1")
	if before.Version == 0 || before.Expires != k.config.Clock().Add(time.Second) {
		t.Errorf("%+v", before)
	}
	k.clock.Add(1)
	if got := k.get(api.StateRun, "gone/1"); got.Version != 0 || got.Value != nil {
		t.Errorf("%+v", got)
	}
	if all := k.paths(api.StateRun, ""); !slices.Equal(all, []string{"stays"}) {
		t.Errorf("%q", all)
	}
	if got := answerOf[api.StateResult](t)(k.calls(agents.StateWatch.Name, fmt.Sprintf(`{"path":"gone/1","version":%d}`, before.Version))); got.Version != 0 {
		t.Errorf("%+v", got)
	}
	_, err := k.calls(agents.StateSet.Name, fmt.Sprintf(`{"path":"gone/99","value":2,"if_version":%d}`, before.Version))
	wantCode(t, err, api.CodeConflict)
	_, err = k.calls(agents.StateSet.Name, `{"path":"gone/99","value":2,"if_version":0}`)
	must(t, err)
	for range 2 {
		_, err = k.calls(agents.StateDelete.Name, `{"path":"none"}`)
		must(t, err)
	}
	if kept, bytes := k.counted(lease.RunBox(1000, k.run.Spec.ID)); kept != 2 || bytes != 2 {
		t.Errorf("%d keys of %d bytes", kept, bytes)
	}
}

// A call that watches is answered by the next change, also by one that removes the key, and at once
// where that has happened already. A change of another key does not answer it.
func TestWatchedKeys(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	watch := func(version uint64) <-chan api.StateResult {
		answers := make(chan api.StateResult, 1)
		go func() {
			defer close(answers) // also where there is no answer
			answers <- answerOf[api.StateResult](t)(k.calls(agents.StateWatch.Name, api.StateWatchParams{StatePath: api.StatePath{StateWhere: where(api.StateName), Path: "a"}, Version: version}))
		}()
		return answers
	}
	waits := func(answers <-chan api.StateResult) {
		t.Helper()
		select {
		case got := <-answers:
			t.Errorf("answered with %+v", got)
		case <-time.After(50 * time.Millisecond):
		}
	}
	answers := watch(0)
	waits(answers)
	k.set(api.StateName, "b", "1")
	k.set(api.StateRun, "a", "1")
	waits(answers)
	first := k.set(api.StateName, "a", "1")
	if got := <-answers; got.Version != first || string(got.Value) != "1" {
		t.Errorf("%+v", got)
	}
	answers = watch(first)
	waits(answers)
	_, err := k.calls(agents.StateDelete.Name, `{"name":"counter","path":"a"}`)
	must(t, err)
	if got := <-answers; got.Version != 0 || got.Value != nil {
		t.Errorf("%+v", got)
	}
	if got := <-watch(first); got.Version != 0 {
		t.Errorf("%+v", got)
	}
	if second := k.set(api.StateName, "a", "2"); (<-watch(first)).Version != second {
		t.Errorf("version %d", second)
	}
}

// The keys of a run go with it, and those that it shares stay.
func TestKeysGoWithTheirRun(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	k.set(api.StateRun, "a", "1")
	k.set(api.StateName, "a", "1")
	must(t, k.Happened(agent.RunEvent{Kind: agent.RunRemoved, ID: k.run.Spec.ID, Name: "worker", Owner: k.run.Owner, Time: k.config.Clock()}, "acme"))
	own, _ := k.counted(lease.RunBox(1000, k.run.Spec.ID))
	shared, _ := k.counted(lease.Of{Owner: 1000, Namespace: "acme", Kind: lease.OfName, Name: "counter"})
	if own != 0 || shared != 1 {
		t.Errorf("%d and %d keys are kept", own, shared)
	}
}

// A user reads and changes the keys that runs of its own share, and root those of any. An agent that
// watches is woken. The control is the key that the agent sees.
func TestKeysOfUsers(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	other, own := uint32(1000), uint32(1000)
	version := k.set(api.StateName, "plans/today", `1`)
	k.set(api.StateNamespace, "shared", `2`)
	k.set(api.StateRun, "alone", `3`)
	for name, c := range map[string]struct {
		uid   uint32
		owner *uint32
		code  api.Code
		keys  int
	}{"its owner": {1000, nil, 0, 1}, "by its number": {1000, &own, 0, 1}, "root": {0, &other, 0, 1}, "root of its own": {0, nil, 0, 0}, "another": {2000, &other, api.CodeDenied, 0}, "another of its own": {2000, nil, 0, 0}} {
		for _, of := range []api.StateOf{{Owner: c.owner, Namespace: "acme"}, {Owner: c.owner, Namespace: "acme", Name: "counter"}} {
			got, err := asks[api.StateListResult](k.rig, c.uid, methods.StateQuery.Name, api.StateQueryParams{StateOf: of})
			if (err == nil) != (c.code == 0) || err != nil && api.ErrorOf(err).Code != c.code || len(got.Keys) != c.keys {
				t.Errorf("%s, %+v: %+v, %v", name, of, got, err)
			}
			for _, method := range []string{methods.StateWrite.Name, methods.StateRemove.Name} {
				params := api.StateWriteParams{StateOf: of, Path: "none", Value: json.RawMessage("1")}
				text := string(encode(params))
				if method == methods.StateRemove.Name {
					text = string(encode(api.StateRemoveParams{StateOf: of, Path: "none"}))
				}
				if _, err := asks[api.Nothing](k.rig, c.uid, method, text); c.code != 0 {
					wantCode(t, err, c.code)
				}
			}
		}
	}
	of := api.StateOf{Namespace: "acme", Name: "counter"}
	read, err := asks[api.StateResult](k.rig, 1000, methods.StateRead.Name, api.StateReadParams{StateOf: of, Path: "plans/today"})
	if err != nil || read.Version != version || string(read.Value) != "1" {
		t.Errorf("%+v, %v", read, err)
	}
	answers := make(chan api.StateResult, 1)
	go func() {
		defer close(answers) // also where there is no answer
		answers <- answerOf[api.StateResult](t)(k.calls(agents.StateWatch.Name, api.StateWatchParams{StatePath: api.StatePath{StateWhere: where(api.StateName), Path: "plans/today"}, Version: version}))
	}()
	set, err := asks[api.StateSetResult](k.rig, 1000, methods.StateWrite.Name, api.StateWriteParams{StateOf: of, Path: "plans/today", Value: json.RawMessage("4"), StateIf: api.StateIf{IfVersion: &version}})
	if got := <-answers; err != nil || got.Version != set.Version || string(got.Value) != "4" {
		t.Errorf("%+v, %+v, %v", got, set, err)
	}
	for _, wrong := range []api.StateOf{{Namespace: "acme//x"}, {Name: "a/b"}} {
		_, err := asks[api.StateSetResult](k.rig, 1000, methods.StateWrite.Name, api.StateWriteParams{StateOf: wrong, Path: "a", Value: json.RawMessage("1")})
		wantCode(t, err, api.CodeParams)
	}
	gone, err := asks[api.StateDeleteResult](k.rig, 1000, methods.StateRemove.Name, api.StateRemoveParams{StateOf: of, Path: "plans/today"})
	if err != nil || gone.Version != set.Version || k.get(api.StateName, "plans/today").Version != 0 {
		t.Errorf("%+v, %v", gone, err)
	}
}
