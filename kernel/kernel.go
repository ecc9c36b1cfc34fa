package kernel

import (
	"context"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/grant"
	"clove.run/clove/store"
)

// Log is where decisions go; *audit.Log is one.
type Log interface {
	Append(entries ...audit.Entry) (first uint64, err error)
	AppendEnd(entries ...audit.Entry) (first uint64, err error)
	Enqueue(e audit.Entry) error
	Room() error
}

// Config is what a Kernel works with. The files stay the caller's.
type Config struct {
	Store *store.Kernel
	Log   Log
	// Queued is the highest number of the store's queue of audit entries that Log has.
	Queued uint64
	// IsHost reports whether an address is one of the host's own, as in egress.Config.
	IsHost func(netip.Addr) bool
	// CheckNet refuses a network rule that a run of the owner's could not start with.
	CheckNet func(rule agent.EgressRule, owner agent.Owner) error
	// LogDir is where Log lies, for reading.
	LogDir string
	// Note gets what happened to the grants and budgets of runs; nil: nobody wants it. It must
	// not block.
	Note func(agent.RunEvent)
	// Called gets each call with the word of its result and its time; nil: nobody wants it.
	Called func(c Caller, method string, err error, took time.Duration)
	// Waiting returns a run's calls of models that wait; nil: no models are served.
	Waiting func(run agent.ID) []api.WaitingCall
}

// Kernel decides calls. Its methods may be called from many goroutines.
type Kernel struct {
	config Config
	now    func() time.Time

	mu       sync.Mutex // guards the following
	attached map[agent.ID]*attachment

	spareTime time.Duration

	changes changes
	spares  spares
	queue   mover
	causes  causes
	rates   rates
	reading sync.Mutex // held while an agent has the log read
}

// attachment is a supervisor that wants to know how its run stands.
type attachment struct {
	run     agent.Run
	start   int // the number of the start that began with Attach
	changed func(api.Standing)
	refused atomic.Int64
	events  eventBound
	// modelEvents is apart: calls of models must not hide what is decided about grants.
	modelEvents eventBound
	places      chan struct{} // has an element for each call of the agent's that is being decided
	again       *time.Timer   // when to report anew though nothing is changed; turn guards it
	turn        sync.Mutex    // one notification after the other, so that the last one is the newest
}

// decidedAtOnce bounds the calls of one agent that are decided at once. Its others wait for
// these: a commit has room for all, and takes the longer the more calls share it, so an agent
// with a hundred in flight would make those of all others wait. With fewer, one agent's calls
// would share too few commits (TestAFloodCostsOthersItsProcessorTimeOnly has the figures).
const decidedAtOnce = 16

// New makes a Kernel over an open store, and begins to move the audit entries that a
// killed process left in it.
func New(c Config) *Kernel {
	k := &Kernel{config: c, now: time.Now, spareTime: spareTime, attached: map[agent.ID]*attachment{},
		spares: spares{runs: map[agent.ID][]*spare{}, taken: map[string]audit.Entry{}}}
	k.queue.start(k)
	return k
}

// Close gives spares back, moves the last audit entries, and ends what New began.
func (k *Kernel) Close() error {
	k.spares.close()
	_, err := k.endSpares(func(*spare) bool { return true })
	return firstError(k.queue.close(), err)
}

// Attach makes a run's grants and budgets ready, unless they are from an earlier start,
// and calls changed with how the run stands: once before it returns, and after each change
// until ctx ends. Where begins is set the run starts: what its agent had reserved before is
// settled as if all had been used.
func (k *Kernel) Attach(ctx context.Context, run agent.Run, begins bool, changed func(api.Standing)) error {
	if begins {
		if _, err := k.endSpares(ofRun(run.Spec.ID)); err != nil {
			return err
		}
	}
	start, err := k.begin(run, begins)
	if err != nil {
		return err
	}
	a := &attachment{run: run, start: start, changed: changed, places: make(chan struct{}, decidedAtOnce)}
	k.mu.Lock()
	k.attached[run.Spec.ID] = a
	k.mu.Unlock()
	context.AfterFunc(ctx, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.attached[run.Spec.ID] == a {
			delete(k.attached, run.Spec.ID)
		}
		// A timer that is left finds nobody attached.
	})
	var spent []api.Notice
	if begins {
		if spent, err = k.spentBefore(run); err != nil {
			return err
		}
	}
	return k.publish(run.Spec.ID, spent)
}

// spentBefore are the notices about budgets of which nothing is left when a run starts, and that
// refuse its calls: those that end or pause it say so themselves.
func (k *Kernel) spentBefore(run agent.Run) (notices []api.Notice, err error) {
	standing, _, err := k.standing(run, k.now())
	for _, b := range standing.Spent {
		if b.AtEnd == string(budget.Refuse) {
			notices = append(notices, notice(api.NoteBudgetWarning, api.BudgetNote{Budget: b}))
		}
	}
	return notices, err
}

// Sockets is how many live agents have a socket of their own.
func (k *Kernel) Sockets() (count int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, a := range k.attached {
		if a.run.Spec.Kernel.HasSocket() {
			count++
		}
	}
	return count
}

// Waiting is how many entries of decisions are in the store and not in the log yet; 0 where
// the store cannot be read.
func (k *Kernel) Waiting() (count int) {
	_ = k.config.Store.Read(func(tx *store.KernelTx) (err error) {
		count, err = tx.CountAudit(k.queue.moved.Load())
		return err
	})
	return count
}

// attachmentOf returns that of a run; nil: no supervisor is attached.
func (k *Kernel) attachmentOf(run agent.ID) *attachment {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.attached[run]
}

// update is one transaction: what is the method that asked for it, or the event of a run.
func (k *Kernel) update(what string, decide func(*store.KernelTx) error) error {
	err := k.config.Store.Update(func(tx *store.KernelTx) error {
		err := decide(tx)
		// gofail: var kernelDecided string
		// if err == nil { err = failpoint(kernelDecided, what) }

		return err
	})
	// gofail: var kernelCommitted string
	// if err == nil { failpoint(kernelCommitted, what) }

	if err == nil {
		k.changes.happened()
	}
	return err
}

// ClockSet reports anew how every run stands. The wall clock was set: a timer counts seconds
// of CLOCK_MONOTONIC, and would let a grant go on beyond its expiry.
func (k *Kernel) ClockSet() error {
	k.mu.Lock()
	runs := slices.Collect(maps.Keys(k.attached))
	k.mu.Unlock()
	var failed error
	for _, run := range runs {
		failed = firstError(failed, k.publish(run, nil))
	}
	return failed
}

// lookAgain bounds the wait for a moment: the clock may be set forward, and a timer does not
// notice that.
const lookAgain = time.Minute

// publish reports how a run stands to its supervisor, if one is attached.
func (k *Kernel) publish(run agent.ID, notices []api.Notice) error {
	a := k.attachmentOf(run)
	if a == nil {
		return nil
	}
	a.turn.Lock()
	defer a.turn.Unlock()
	now := k.now()
	standing, until, err := k.standing(a.run, now)
	if err != nil {
		return err
	}
	if a.again != nil {
		a.again.Stop()
	}
	if !until.IsZero() {
		a.again = time.AfterFunc(min(until.Sub(now), lookAgain), func() { _ = k.publish(run, nil) }) // the next change tries again
	}
	standing.Notices, standing.Start = notices, a.start
	a.changed(standing)
	return nil
}

// standing reads how a run stands at now, and until when at most it stands so: then a net
// grant expires, or a period ends. until is zero where no time changes anything.
func (k *Kernel) standing(run agent.Run, now time.Time) (s api.Standing, until time.Time, err error) {
	err = k.config.Store.Read(func(tx *store.KernelTx) error {
		grants, err := effective(tx, run.Spec.ID)
		if err != nil {
			return err
		}
		for _, g := range grants {
			for _, rule := range grant.Rules([]grant.Grant{g}, k.config.IsHost, now) {
				s.Net = append(s.Net, api.NetRule{EgressRule: rule, Expires: g.Expires})
			}
			if g.Kind == grant.Net && g.Expires.After(now) {
				until = earlier(until, g.Expires)
			}
		}
		chain, err := chainOf(tx, run)
		until = earlier(until, addBudgets(&s, chain, now))
		return err
	})
	return s, until, err
}

// addBudgets adds to a standing what the accounts say, and returns when a period ends of
// which nothing is left.
func addBudgets(s *api.Standing, chain budget.Chain, now time.Time) (until time.Time) {
	for _, b := range result(chain, now).Budgets {
		if b.Spent && b.Wanted == 0 && budget.Key(b.Account).Claimed(budget.Dimension(b.Dimension)) {
			b.AtEnd = string(budget.Refuse) // what other runs have claimed refuses calls of this one, and no more
		}
		if b.Spent {
			s.Spent = append(s.Spent, b)
			until = earlier(until, budget.Period(b.Period).End(b.Since))
		}
		if budget.Dimension(b.Dimension).Metered() && b.Granted != nil && !slices.Contains(s.Metered, b.Dimension) {
			s.Metered = append(s.Metered, b.Dimension)
		}
	}
	return until
}

// earlier is the earlier of two times, of which zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// notice is a notification for an agent.
func notice(method string, params any) api.Notice {
	text, _ := json.Marshal(params) // a value of clove's own making always encodes
	return api.Notice{Method: method, Params: text}
}
