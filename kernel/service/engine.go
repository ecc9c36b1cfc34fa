package service

import (
	"cmp"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/store"
)

// Log is where decisions go; *audit.Log is one.
type Log interface {
	Append(entries ...audit.Entry) (first uint64, err error)
	AppendEnd(entries ...audit.Entry) (first uint64, err error)
	Enqueue(e audit.Entry) error
	Room() error
}

// Grants answers the stage grant.
type Grants interface {
	// Cover returns the id of the grant of the calling agent that covers what, or refuses.
	Cover(c *Call, what string) (rule string, err error)
	// Use counts one use of a grant that covered.
	Use(c *Call, rule string) error
}

// Taints answers the stage taints.
type Taints interface {
	Carried(c *Call) ([]string, error)
}

// Ledger answers the stages budget and settle. A call reserves once, below its id.
type Ledger interface {
	Reserve(c *Call, costs budget.Amounts) (Outcome, error)
	Settle(c *Call, used budget.Amounts) (Outcome, error)
}

// Approvals answers the stage approval.
type Approvals interface {
	// Ask puts a question to people, in the transaction of the call.
	Ask(c *Call, question Asking) (Outcome, error)
	// Decided returns what people answered to the question of a call, and of a no the reason.
	Decided(c *Call) (answer Approval, reason string, err error)
}

// Approval is an answer of people.
type Approval string

// The answers.
const (
	Undecided Approval = ""
	Approved  Approval = "approved"
	Denied    Approval = "denied"
)

// Standing reads how a run stands at now, and until when that holds at most; zero: until a change.
type Standing func(tx *store.KernelTx, run agent.Run, now time.Time) (s api.Standing, until time.Time, err error)

// Config is what an Engine works with. The files stay the caller's.
type Config struct {
	Store *store.Kernel
	Log   Log
	// Queued is the highest number of the store's queue of audit entries that Log has.
	Queued   uint64
	Standing Standing
	// The stages ask these. Without one, a call that declares something for it is refused.
	Grants    Grants
	Taints    Taints
	Ledger    Ledger
	Approvals Approvals
	// Note gets events of runs, and must not block; nil: they are dropped.
	Note func(agent.RunEvent)
	// Caused notes the call from which ends of runs follow, before those end; nil: events of ends do not name it.
	Caused func(call string, runs ...agent.ID)
	// Called gets each call with its result and its time; nil: calls are not counted.
	Called func(c Caller, method string, err error, took time.Duration)
	// Committed is called after each transaction; nil: nothing waits for that. It must not block.
	Committed func()
	// Idle is called when the agent of a run has only waited for the time of its spec; nil: no run is ended for that.
	Idle func(agent.Run)
	// Clock is the wall clock; nil: the host's.
	Clock func() time.Time
}

// Engine takes calls through the stages. Its methods may be called from many goroutines.
type Engine struct {
	config  Config
	now     func() time.Time
	methods table

	turns     *turns
	topics    topics
	preparing sync.Map // keys of calls that work before their transactions
	answers   carriers
	*supervisors
	*mover
	causes
}

// NewEngine makes an engine of services over an open store, and begins to move the audit entries that a
// killed process left in it.
func NewEngine(c Config, services ...*Service) (*Engine, error) {
	methods, err := tableOf(services)
	if err != nil {
		return nil, err
	}
	e := &Engine{config: c, now: c.Clock, methods: methods, turns: newTurns()}
	if e.now == nil {
		e.now = time.Now
	}
	e.supervisors = &supervisors{read: c.Store.Read, now: e.now, standing: c.Standing, event: c.Note, idle: c.Idle, attached: map[agent.ID]*attachment{}}
	e.mover = &mover{store: c.Store, log: c.Log, update: e.update}
	e.causes.keep = c.Caused
	e.answers.start()
	e.topics.start()
	e.mover.start(c.Queued)
	return e, nil
}

// Close ends the calls that wait, moves the last audit entries, and ends what NewEngine began.
func (e *Engine) Close() error {
	e.Rest()
	e.topics.close()
	return e.mover.close()
}

// Now is the time that the engine decides with.
func (e *Engine) Now() time.Time { return e.now() }

// Serves returns the methods that the engine serves, by name.
func (e *Engine) Serves() map[string]Method { return e.methods }

// Read runs read in a transaction that cannot change anything.
func (e *Engine) Read(read func(*store.KernelTx) error) error { return e.config.Store.Read(read) }

// update is one transaction: what is the method that asked for it, or the event of a run.
func (e *Engine) update(what string, decide func(*store.KernelTx) error) error {
	err := e.config.Store.Update(func(tx *store.KernelTx) error {
		err := decide(tx)
		// gofail: var kernelDecided string
		// if err == nil { err = failpoint(kernelDecided, what) }

		return err
	})
	// gofail: var kernelCommitted string
	// if err == nil { failpoint(kernelCommitted, what) }

	if err == nil && e.config.Committed != nil {
		e.config.Committed()
	}
	return err
}

// Update runs a change of the store that is about no call.
func (e *Engine) Update(what string, decide func(*store.KernelTx) error) error {
	defer e.wake()
	return e.update(what, decide)
}

// Look runs look in a read transaction, as a call of the caller.
func (e *Engine) Look(caller Caller, look func(*Call) error) error {
	return e.Read(func(tx *store.KernelTx) error { return look(&Call{Caller: caller, Tx: tx, Now: e.now()}) })
}

// Within runs decide in a transaction about a run that no caller began, and does what it decided.
// what names the transaction, id the call from which it follows; empty: a new one.
func (e *Engine) Within(run agent.Run, what, id string, decide func(*Call) (Outcome, error)) error {
	_, err := e.change(Caller{Run: run, UID: run.Owner.UID, ID: id}, what, decide)
	return err
}

// As is Within for a part of a caller's call, which is recorded by itself.
func As(e *Engine, caller Caller, what string, decide func(*Call) (Outcome, error)) error {
	_, err := e.change(caller, what, decide)
	return err
}

// For is Within for what a part of clove's does for a caller: it is recorded as the caller's call of
// a method, which names about. So is a refusal, but for an error that is Quiet.
func (e *Engine) For(caller Caller, method, about string, decide func(*Call) (Outcome, error)) error {
	c, err := e.change(caller, method, func(c *Call) (Outcome, error) {
		out, err := decide(c)
		if err == nil && out.Refusal == nil {
			err = Record(c.Tx, c.recorded(out))
		}
		return out, err
	})
	var silent quiet
	if err == nil || errors.As(err, &silent) {
		return err
	}
	c.out.About, c.digested = about, Digest(method, about)
	e.refused(c, err)
	return err
}

// recorded is the entry of a call with an outcome.
func (c *Call) recorded(out Outcome) audit.Entry {
	c.out = out
	return c.entry(audit.VerdictAllow)
}

// quiet is an error that is no refusal.
type quiet struct{ error }

func (q quiet) Unwrap() error { return q.error }

// Quiet marks an error as no refusal: it is returned and not recorded.
func Quiet(err error) error { return quiet{err} }

// change is a transaction with what it decided.
func (e *Engine) change(caller Caller, what string, decide func(*Call) (Outcome, error)) (*Call, error) {
	caller.ID = cmp.Or(caller.ID, string(agent.NewID()))
	c := &Call{Caller: caller, Method: what, Now: e.now()}
	err := e.update(what, func(tx *store.KernelTx) (err error) {
		c.again(tx, e.now()) // it may run more than once
		c.out, err = decide(c)
		return err
	})
	if err != nil {
		return c, err
	}
	return c, e.settled(c)
}

// settled does what a call decided, once that is durable.
func (e *Engine) settled(c *Call) error {
	e.wake()
	for _, f := range c.out.Durable {
		f()
	}
	if c.out.Ends {
		e.Caused(c.ID, c.Run.Spec.ID)
	}
	e.noteAll(c)
	e.topics.touch(c.out.Topics...)
	return cmp.Or(e.report(c), c.out.Refusal)
}

// Record queues an audit entry in the transaction of what it is about.
func Record(tx *store.KernelTx, entry audit.Entry) error {
	text, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	_, err = store.AuditQueue.Add(tx, text)
	return err
}
