package kernel

import (
	"cmp"
	"context"
	"encoding/json"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/apply"
	"clove.run/clove/kernel/approvals"
	"clove.run/clove/kernel/blob"
	"clove.run/clove/kernel/blobs"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/budgets"
	"clove.run/clove/kernel/events"
	"clove.run/clove/kernel/grants"
	"clove.run/clove/kernel/handoff"
	"clove.run/clove/kernel/jobs"
	"clove.run/clove/kernel/lease"
	"clove.run/clove/kernel/ledger"
	"clove.run/clove/kernel/mail"
	"clove.run/clove/kernel/names"
	"clove.run/clove/kernel/records"
	"clove.run/clove/kernel/secrets"
	"clove.run/clove/kernel/service"
	"clove.run/clove/kernel/spawn"
	"clove.run/clove/kernel/state"
	"clove.run/clove/kernel/tools"
	"clove.run/clove/store"
)

// Config is what a Kernel works with. The files stay the caller's.
type Config struct {
	Store *store.Kernel
	Log   service.Log
	// Queued is the highest number of the store's queue of audit entries that Log has.
	Queued uint64
	// IsHost reports whether an address is one of the host's own, as in egress.Config.
	IsHost func(netip.Addr) bool
	// CheckNet refuses a network rule that a run of the owner's could not start with.
	CheckNet func(rule agent.EgressRule, owner agent.Owner) error
	// Approvers are the users who may answer questions of all runs, beside root; nil: there are none.
	Approvers func() []uint32
	// Manifest and Run are as in grants.Grants.
	Manifest func(tx *store.KernelTx, owner uint32, name string) (digest string, err error)
	Run      func(id agent.ID) (run agent.Run, found bool)
	// LogDir is where Log lies, for reading.
	LogDir string
	// Note gets what happened to the grants and budgets of runs, and must not block; nil: it is
	// dropped.
	Note func(agent.RunEvent)
	// Caused is as in service.Config.
	Caused func(call string, runs ...agent.ID)
	// Called gets each call with its result and its time; nil: calls are not counted.
	Called func(c service.Caller, method string, err error, took time.Duration)
	// Asked gets each question to people when it is new, and how each ended: asked, or the state; nil: they are not counted.
	Asked func(kind api.ApprovalKind, outcome string)
	// Waiting returns a run's calls of models that wait; nil: no models are served.
	Waiting func(run agent.ID) []api.WaitingCall
	// Ready notes that a run has said that it is ready, before the answer; nil: nothing waits for it.
	Ready func(run agent.ID) error
	// Find returns the run of an owner with a name or id; nil: there is only the caller's.
	Find func(owner uint32, reference string) (agent.Run, bool)
	// Event is as in events.Events.
	Event func(number uint64) (agent.RunEvent, bool)
	// Runs are those that agents start; nil: they start none.
	Runs spawn.Runs
	// Changes are those of runs in their workspaces; nil: agents apply none.
	Changes apply.Files
	// Blobs is the directory of blobs, and Files has those of agents; without both, as in a run without cloved,
	// bodies are in the store.
	Blobs blobs.Dir
	Files blobs.Files
	// Tools are where tools run; nil: nowhere.
	Tools tools.Places
	// Taints are what agents carry; nil: what avoids a taint is refused.
	Taints service.Taints
	// Secrets encrypt the values of secrets; nil: there are none here.
	Secrets secrets.Keys
	// Services are those of the caller's own, beside the ones of this package.
	Services []*service.Service
	// Clock is the wall clock; nil: the host's.
	Clock func() time.Time
}

// Kernel decides calls. Its methods may be called from many goroutines.
type Kernel struct {
	// Ledger is for parts of clove's that spend for agents.
	Ledger *ledger.Ledger
	// Secrets is for parts of clove's that pass values of secrets on.
	Secrets Secrets
	engine  *service.Engine
	grants  grants.Grants
	budgets *budgets.Budgets
	spawn   *spawn.Spawn
	blobs   *blobs.Blobs
	store   *store.Kernel
	log     service.Log
	jobs    *jobs.Jobs
	names   names.Names
	alarm   *alarm
	asks    *approvals.Approvals
	secrets secrets.Secrets
	starts  atomic.Bool // runs are started for jobs and for mail
}

// New makes a Kernel over an open store, and begins to move the audit entries that a
// killed process left in it.
func New(c Config) (*Kernel, error) {
	if c.Runs != nil {
		c.Manifest, c.Run = spawn.Digest, c.Runs.Get
	}
	k := &Kernel{grants: grants.Grants{IsHost: c.IsHost, CheckNet: c.CheckNet, Manifest: c.Manifest, Run: c.Run}, budgets: &budgets.Budgets{}, log: c.Log, store: c.Store}
	k.Ledger, k.Secrets = ledger.New(k.grants, k.budgets), Secrets{k}
	k.spawn = &spawn.Spawn{Runs: c.Runs, Rights: k.grants, Places: k.budgets, IsHost: c.IsHost}
	logs := &records.Records{Dir: c.LogDir}
	happened := events.New(events.Events{Dir: c.LogDir, Run: c.Run, Event: c.Event})
	due := func(at time.Time) { k.alarm.set(at) }
	k.names = names.Names{Run: c.Run, Registered: mail.Collect, Removed: mail.Removed, Changed: mail.Room, Waits: mail.Waits(func() time.Time { return k.engine.Now() }), Due: due}
	if c.Runs != nil {
		k.names.Starter = waker{&k.spawn.Launcher}
	}
	named := k.names
	k.jobs = &jobs.Jobs{Starter: starter{&k.spawn.Launcher, k.spawn}, Due: due}
	k.spawn.Launcher.Ended, k.spawn.Launcher.Spent = k.startEnded, budgets.Spent
	k.blobs = blobs.New(blobs.Config{Dir: c.Blobs, Files: c.Files, Ledger: k.budgets, Holders: holders, Covers: state.Covers, Holder: state.Holder, Job: jobs.Holder})
	k.jobs.Blobs, k.spawn.Launcher.Content = k.blobs, k.blobs.Path
	mails := mail.Mail{Run: c.Run, Names: named, Subscribers: named, Blobs: k.blobs}
	if c.Find != nil {
		mails.Find = k.finder(c)
	}
	handoffs := &handoff.Service{Grants: k.grants, Accounts: k.budgets, Receiver: mails.Receiver}
	k.asks = &approvals.Approvals{Run: c.Run, CheckNet: c.CheckNet, Approvers: c.Approvers, Grants: k.grants, Budgets: k.budgets, Counted: c.Asked, Due: due}
	k.budgets.More = k.asks.More
	k.asks.Answered = func(q service.Question) error { return k.engine.Answered(q) }
	k.secrets = secrets.Secrets{Keys: c.Secrets, Run: c.Run, Grants: k.grants, Taints: c.Taints, People: k.asks}
	k.asks.Secret = k.secrets.Question
	called := &tools.Tools{Ledger: k.Ledger, Grants: k.grants, Places: c.Tools, People: k.asks, Read: c.Store.Read}
	var err error
	k.engine, err = service.NewEngine(service.Config{Store: c.Store, Log: c.Log, Queued: c.Queued, Standing: k.standing, Grants: k.grants, Taints: c.Taints, Ledger: k.budgets, Approvals: k.asks,
		Note: c.Note, Caused: c.Caused, Called: c.Called, Committed: k.committed, Idle: k.idle(c.Runs), Clock: c.Clock},
		append([]*service.Service{k.about(c.Ready), k.grants.Service(), k.budgets.Service(), k.Ledger.Service(c.Waiting), logs.Service(), happened.Service(), k.spawn.Service(), handoffs.Service(), mails.Service(), named.Service(), state.State{Blobs: k.blobs}.Service(), k.blobs.Service(), k.jobs.Service(), k.asks.Service(), apply.Apply{Files: c.Changes}.Service(), k.secrets.Service(), called.Service()}, c.Services...)...)
	if err != nil {
		return nil, err
	}
	k.Ledger.Serve(k.engine)
	k.spawn.Serve(k.engine)
	called.Serve(k.engine)
	k.blobs.Serve(k.engine)
	happened.Serve(k.engine)
	k.alarm = newAlarm(k.engine.Now, k.due)
	return k, nil
}

// finder finds the child to which the agent of a call gave a name, or else what Find does.
func (k *Kernel) finder(config Config) func(*service.Call, uint32, string) (agent.Run, bool) {
	return func(c *service.Call, owner uint32, reference string) (agent.Run, bool) {
		if id, named := k.spawn.Child(c, reference); named && config.Run != nil {
			return config.Run(id)
		}
		return config.Find(owner, reference)
	}
}

// Tables are those that the engine and the services of this package declare, for store.OpenKernel.
func Tables() []store.Declared {
	return slices.Concat(spawn.Tables(), lease.Tables(), state.Tables(), blob.Tables(), jobs.Tables(), secrets.Tables(), tools.Tables(), []store.Declared{service.Questions, handoff.Offers, names.Rows, events.Rows, approvals.Rows})
}

// Queued is service.Queued.
func Queued(file *store.Kernel, logDir string) (uint64, error) { return service.Queued(file, logDir) }

// Close gives spares back, moves the last audit entries, and ends what New began.
func (k *Kernel) Close() error {
	k.alarm.end()
	k.engine.Rest()
	k.spawn.Close()
	k.blobs.Close()
	err := k.Ledger.Close()
	return cmp.Or(k.engine.Close(), err)
}

// Methods are the methods that Call serves, by name.
func (k *Kernel) Methods() map[string]service.Method { return k.engine.Serves() }

// Call takes a call through the stages. The error is an *api.Error, or becomes one (api.ErrorOf).
func (k *Kernel) Call(ctx context.Context, c service.Caller, r service.Request) (json.RawMessage, error) {
	return k.engine.Call(ctx, c, r)
}

// Sockets is how many live agents have a socket of their own.
func (k *Kernel) Sockets() (count int) {
	for _, run := range k.engine.Attached() {
		if run.Spec.Kernel.HasSocket() {
			count++
		}
	}
	return count
}

// Waiting is how many entries of decisions are not in the log yet.
func (k *Kernel) Waiting() int { return k.engine.Waiting() }

// ClockSet reports anew how every run stands: the wall clock was set.
func (k *Kernel) ClockSet() error { return k.engine.ClockSet() }

// Notices has notices go to a run's agent directly, but for those that its supervisor needs, until leave, which
// gets those that were not sent.
func (k *Kernel) Notices(run agent.ID, direct service.Direct) (leave func(left []api.Notice)) {
	return k.engine.Notices(run, direct)
}

// Caused notes that what happens to runs next follows from a call, for their entries.
func (k *Kernel) Caused(call string, runs []agent.Run) {
	ids := make([]agent.ID, len(runs))
	for i, run := range runs {
		ids[i] = run.Spec.ID
	}
	k.engine.Caused(call, ids...)
}

// LastMinute returns what a run spent in the last minute, without what is zero.
func (k *Kernel) LastMinute(run agent.ID) budget.Amounts {
	return k.budgets.LastMinute(run, k.engine.Now())
}

// Metered reports whether the run has a part in an account that limits what the Linux kernel
// counts.
func (k *Kernel) Metered(run agent.Run) (metered bool, err error) {
	err = k.engine.Read(func(tx *store.KernelTx) error {
		metered, err = budgets.Metered(tx, run, k.engine.Now())
		return err
	})
	return metered, err
}

// standing reads how a run stands at now, and until when at most it stands so: then a net
// grant expires, or a period ends. until is zero where no time changes anything.
func (k *Kernel) standing(tx *store.KernelTx, run agent.Run, now time.Time) (s api.Standing, until time.Time, err error) {
	expires, err := k.grants.Standing(tx, run, now, &s)
	if err != nil {
		return s, until, err
	}
	if err = approvals.Standing(tx, run, &s); err != nil {
		return s, until, err
	}
	until, err = budgets.Standing(tx, run, now, &s)
	if until.IsZero() || !expires.IsZero() && expires.Before(until) {
		until = expires
	}
	return s, until, err
}
