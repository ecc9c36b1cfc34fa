package kernel

import (
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/secrets"
	"clove.run/clove/kernel/service"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/blobs"
	"clove.run/clove/kernel/spawn"
	"clove.run/clove/store"
)

// patience bounds every wait of a test, also on a loaded machine.
const patience = time.Minute

// rig is a Kernel over a real file and a real log, and one run.
type rig struct {
	keys   secrets.Keys   // nil: it keeps no secrets
	taints service.Taints // nil: they are not kept
	tools  place          // nil: no tools run
	t      *testing.T
	*Kernel
	dir      string
	file     *store.Kernel
	log      *audit.Log
	run      agent.Run
	config   Config
	children spawn.Runs   // nil: agents start no others
	files    blobs.Files  // nil: agents have none
	clock    atomic.Int64 // seconds since 1970
	note     atomic.Pointer[func(agent.RunEvent)]
	number   atomic.Pointer[agent.RunEvent] // the one in the list of events
	// manifests are digests by name, runs are those that were attached, by id.
	manifests, runs *sync.Map
	caused          sync.Map // calls from which ends follow, by run
	close           func()   // may be called again
}

// newRig attaches a run of user 1000.
func newRig(t *testing.T, has agent.Kernel) *rig {
	t.Helper()
	return newRigOf(t, newRun(1000, has))
}

func newRun(uid uint32, has agent.Kernel) agent.Run {
	return agent.Run{Spec: agent.Spec{ID: agent.NewID(), Name: "worker", Network: agent.NetworkNone, Kernel: has}, Owner: agent.Owner{UID: uid, GID: uid}}
}

func newRigOf(t *testing.T, run agent.Run) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), run: run, manifests: &sync.Map{}, runs: &sync.Map{}}
	r.manifests.Store("writer", "sha256:writer")
	r.clock.Store(1_800_000_000)
	r.open()
	r.attach(true)
	return r
}

// open opens the files as cloved does at its start.
func (r *rig) open() {
	r.t.Helper()
	var err error
	r.file, err = store.OpenKernel(filepath.Join(r.dir, "kernel.db"), patience, Tables()...)
	must(r.t, err)
	r.log, err = audit.Open(r.logDir(), audit.RunOptions())
	must(r.t, err)
	queued, err := Queued(r.file, r.logDir())
	must(r.t, err)
	r.config = Config{Store: r.file, Log: r.log, LogDir: r.logDir(), Queued: queued, IsHost: func(a netip.Addr) bool { return a == hostAddress }, CheckNet: checkNet,
		Approvers: func() []uint32 { return []uint32{2000, 2001} },
		Manifest:  r.manifest, Run: r.known, Clock: func() time.Time { return time.Unix(r.clock.Load(), 0).UTC() }, Note: r.noted, Event: r.listed, Caused: r.causes, Runs: r.children, Find: r.find,
		Blobs: blobs.Dir(filepath.Join(r.dir, "blobs")), Files: r.files, Secrets: r.keys, Taints: r.taints}
	if r.tools != nil {
		r.config.Tools = r.tools
	}
	r.serve(r.config)
	r.close = sync.OnceFunc(r.closeAll)
	r.t.Cleanup(func() { r.close() })
}

// manifest knows those that the test has added.
func (r *rig) manifest(_ *store.KernelTx, owner uint32, name string) (string, error) {
	if digest, found := r.manifests.Load(name); found && owner == 1000 {
		return digest.(string), nil
	}
	return "", api.Failure(api.CodeNotFound, "clove manifest add FILE", "there is no manifest %.64q", name)
}

// known returns the runs that the test has attached.
func (r *rig) known(id agent.ID) (agent.Run, bool) {
	run, found := r.runs.Load(id)
	if !found {
		return agent.Run{}, false
	}
	return run.(agent.Run), true
}

// find returns a run that the test has attached, by its owner and its name.
func (r *rig) find(owner uint32, reference string) (found agent.Run, is bool) {
	r.runs.Range(func(_, value any) bool {
		run := value.(agent.Run)
		if run.Owner.UID == owner && (run.Spec.Name == reference || string(run.Spec.ID) == reference) {
			if is && run.Spec.ID != found.Spec.ID {
				r.t.Errorf("two runs of %d are named %s", owner, reference)
			}
			found, is = run, true
		}
		return true
	})
	return found, is
}

// serve begins a Kernel.
func (r *rig) serve(c Config) {
	r.t.Helper()
	k, err := New(c)
	must(r.t, err)
	r.Kernel = k
	r.Ledger.SpareTime = time.Hour // a machine may be slow
}

func (r *rig) causes(call string, runs ...agent.ID) {
	for _, run := range runs {
		r.caused.Store(run, call)
	}
}

func (r *rig) listed(number uint64) (agent.RunEvent, bool) {
	e := r.number.Load()
	if e == nil || e.Sequence != number {
		return agent.RunEvent{}, false
	}
	return *e, true
}

func (r *rig) noted(e agent.RunEvent) {
	if note := r.note.Load(); note != nil {
		(*note)(e)
	}
}

// closeAll also holds the files against the store's invariants.
func (r *rig) closeAll() {
	wrong, err := r.Kernel.Check()
	must(r.t, err)
	for _, problem := range wrong {
		r.t.Error("check:", problem)
	}
	must(r.t, r.Kernel.Close())
	must(r.t, r.log.Close())
	must(r.t, r.file.Close())
}

func (r *rig) logDir() string { return filepath.Join(r.dir, "audit") }

var hostAddress = netip.MustParseAddr("10.9.9.9")

// checkNet refuses one name to every user but root.
func checkNet(rule agent.EgressRule, owner agent.Owner) error {
	if rule.Target == "forbidden.example" && owner.UID != 0 {
		return api.Failure(api.CodeDenied, "", "not for users")
	}
	return nil
}

// attach returns the standings that the run's supervisor gets, until the test ends.
func (r *rig) attach(begins bool) <-chan api.Standing {
	r.t.Helper()
	ctx, leave := context.WithCancel(context.Background())
	r.t.Cleanup(leave)
	standings := make(chan api.Standing, 1000)
	r.runs.Store(r.run.Spec.ID, r.run)
	must(r.t, r.Attach(ctx, r.run, begins, func(now api.Standing) { standings <- now }))
	return standings
}

func (r *rig) asAgent(method string, params any) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience) // a wait that nothing ends is a fault
	defer cancel()
	return r.Call(ctx, service.Caller{Run: r.run, Agent: true, UID: r.run.Owner.UID}, service.Request{Method: method, Text: encode(params)})
}

// asks is a user's call about no run.
func asks[R any](r *rig, uid uint32, method string, params any) (result R, err error) {
	text, err := r.Call(context.Background(), service.Caller{UID: uid}, service.Request{Method: method, Text: encode(params)})
	if err == nil {
		err = json.Unmarshal(text, &result)
	}
	return result, err
}

func (r *rig) SetBudget(uid uint32, p api.BudgetSetParams) (api.BudgetResult, error) {
	return asks[api.BudgetResult](r, uid, methods.BudgetSet.Name, p)
}

func (r *rig) ListBudgets(uid uint32, p api.BudgetListParams) (api.BudgetListResult, error) {
	return asks[api.BudgetListResult](r, uid, methods.BudgetList.Name, p)
}

func (r *rig) ReportBudgets(uid uint32, p api.BudgetReportParams) (api.BudgetReportResult, error) {
	return asks[api.BudgetReportResult](r, uid, methods.BudgetReport.Name, p)
}

func (r *rig) TopBudgets(uid uint32, p api.BudgetTopParams) (api.BudgetTopResult, error) {
	return asks[api.BudgetTopResult](r, uid, methods.BudgetTop.Name, p)
}

func (r *rig) asUser(uid uint32, method string, params any) (json.RawMessage, error) {
	return r.Call(context.Background(), service.Caller{Run: r.run, UID: uid}, service.Request{Method: method, Text: encode(params)})
}

// encode returns parameters; a string is their text already.
func encode(params any) json.RawMessage {
	if text, ok := params.(string); ok {
		return json.RawMessage(text)
	}
	text, err := json.Marshal(params)
	if err != nil {
		panic(fmt.Sprintf("parameters of a test do not encode: %v", err))
	}
	return text
}

// charge is an agent's charge of one dimension.
func (r *rig) charge(dimension string, amount int64) {
	r.t.Helper()
	_, err := r.asAgent(agents.BudgetCharge.Name, api.BudgetChargeParams{Amounts: map[string]int64{dimension: amount}})
	must(r.t, err)
}

// reserve is an agent's reservation of one dimension.
func (r *rig) reserve(dimension string, amount int64) (id string) {
	r.t.Helper()
	return answerOf[api.BudgetReserveResult](r.t)(r.asAgent(agents.BudgetReserve.Name, api.BudgetReserveParams{Amounts: map[string]int64{dimension: amount}})).Reservation
}

// line returns the run's own line of a dimension.
func (r *rig) line(dimension string) api.Budget {
	r.t.Helper()
	all := answerOf[api.BudgetResult](r.t)(r.asAgent(agents.BudgetGet.Name, api.Nothing{}))
	for _, b := range all.Budgets {
		if b.Dimension == dimension {
			return b
		}
	}
	r.t.Fatalf("no %s in %+v", dimension, all)
	return api.Budget{}
}

// grants returns what the run holds, by its text.
func (r *rig) grants() map[string]api.Grant {
	r.t.Helper()
	all := map[string]api.Grant{}
	for _, g := range answerOf[api.GrantListResult](r.t)(r.asAgent(agents.GrantList.Name, api.Nothing{})).Grants {
		all[g.Grant] = g
	}
	return all
}

// entries closes the rig and returns the log.
func (r *rig) entries() (all []audit.Entry) {
	r.t.Helper()
	r.close()
	must(r.t, audit.Query(r.logDir(), audit.Filter{}, func(e audit.Entry) error { all = append(all, e); return nil }))
	return all
}

// answerOf returns the reader of an answer.
func answerOf[R any](t *testing.T) func(json.RawMessage, error) R {
	t.Helper()
	return func(text json.RawMessage, err error) (result R) {
		t.Helper()
		must(t, err)
		must(t, json.Unmarshal(text, &result))
		return result
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t testing.TB, err error, code api.Code) {
	t.Helper()
	if err == nil || api.ErrorOf(err).Code != code {
		t.Errorf("got %v, want code %d", err, code)
	}
}
