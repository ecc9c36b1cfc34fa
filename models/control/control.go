// Package control is root's side of models: it decides each call of an agent, reserves and
// settles what it costs, and keeps the processes that do the rest. It parses nothing that
// an agent or a provider wrote.
//
// A call passes through it like this:
//
//	clove-models: Begin ─▶ model and target ─▶ grant, budget reserved ─▶ clove-upstream: Call
//	                                                                 └─▶ clove-models: Go
//	clove-upstream: Done ─▶ budget settled, usage counted
//	                    └─▶ failed before the first byte: the next target, and Go again
//
// Where a run asks for a log of what its calls say, clove-upstream copies it, and control puts it
// into the log as bytes.
//
// Each process is replaced when it ends. What a call had reserved when clove-upstream ended
// counts as used. Where there are journals, the processes outlast control: the calls in flight
// come to their end, and the next control settles them (Find).
package control

import (
	"clove.run/clove/kernel/ledger"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"clove.run/clove/agent"
	"clove.run/clove/internal/packet"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/models"
	"clove.run/clove/models/config"
	"clove.run/clove/models/link"
)

// Ledger has the grants and budgets of runs. *ledger.Ledger is one.
type Ledger interface {
	Allowed(run agent.Run, what string) (bool, error)
	Left(run agent.Run, c *ledger.Ceiling) (budget.Left, error)
	// Changed returns a channel that is closed with the next change of any account.
	Changed() <-chan struct{}
	Reserve(run agent.Run, s ledger.Spending) (reservation string, err error)
	Renew(run agent.Run, n ledger.Renewal) error
	Settle(run agent.Run, s ledger.Settlement) error
}

// Options are what a Control works with.
type Options struct {
	Ledger Ledger
	// Config is the configuration that holds now.
	Config func() *config.Config
	// Programs returns the directory of clove-models and clove-upstream.
	Programs func() (string, error)
	// Secret returns a provider's key by its name.
	Secret func(name string) (string, error)
	// Called is told of each call that has ended, and must not block; nil: nobody asks.
	Called func(run agent.Run, c models.Call)
	// Journals is a directory for what makes calls outlast this process; empty: they end with it.
	Journals string
	// Run returns a run by its id, also one that has ended, for calls that Find finds.
	Run func(agent.ID) (agent.Run, error)
	// Contents opens the log of a run that asks for one (Spec.Kernel.ModelLog).
	Contents func(run agent.ID) (Contents, error)
	Log      *slog.Logger
}

// groups are those of an owner, which the account database names; none if it cannot be read:
// then the user alone counts.
func groups(owner agent.Owner) []uint32 {
	all := []uint32{owner.GID}
	account, err := user.LookupId(strconv.FormatUint(uint64(owner.UID), 10))
	if err != nil {
		return all
	}
	ids, _ := account.GroupIds() // those that could be read
	for _, id := range ids {
		if n, err := strconv.ParseUint(id, 10, 32); err == nil {
			all = append(all, uint32(n))
		}
	}
	return all
}

func newServed(run agent.Run, listener *os.File) *served {
	return &served{run: run, groups: groups(run.Owner), listener: listener, tally: newTally(), uncounted: rate.NewLimiter(uncountedPerSecond, maxUncounted)}
}

// Control serves models to runs. Its methods may be called from many goroutines.
type Control struct {
	options Options
	gates   turnstiles
	health  health
	places  int           // maxFlying; tests have fewer
	maxWait time.Duration // of a call for its turn
	pause   time.Duration // the least from the start of a clove-models to that of the next
	loads   loads
	held    room // bytes of contents in memory
	spawn   func(executable string, id uint32, journal *os.File, files ...*os.File) (child, error)

	starts sync.Mutex // held while a process starts; taken before mu

	mu       sync.Mutex // guards the following
	closed   bool
	runs     map[agent.ID]*served
	early    map[agent.ID]*served // of calls that Find found, and whose supervisor has not come
	fronts   map[uint32]*front    // by owner
	upstream *upstream            // nil: none was needed yet
	scripts  map[string]*process
	calls    map[uint64]*call // in flight, by control's number
	tests    map[uint64]expectation
	last     uint64
}

// served is a run whose agent may call models.
type served struct {
	run       agent.Run
	groups    []uint32 // of its owner
	listener  *os.File
	line      line      // of calls that wait for what others hold
	contents  *contents // nil: nothing is logged
	tally     *tally
	uncounted *rate.Limiter // of calls that are no model_calls

	mu      sync.Mutex // guards the following
	flying  int        // calls that have reserved and are not paid
	copying int        // copies of contents that are not logged
	waiting int        // calls that wait
}

// New makes a Control. No process is started before a run asks for models.
func New(o Options) *Control {
	return &Control{options: o, places: maxFlying, maxWait: maxWait, pause: time.Second, spawn: spawn, gates: turnstiles{all: map[string]*turnstile{}}, runs: map[agent.ID]*served{}, early: map[agent.ID]*served{}, fronts: map[uint32]*front{}, scripts: map[string]*process{}, calls: map[uint64]*call{}}
}

// Serve has a run's agent served on a listener, which becomes the Control's, until ctx ends.
// used returns what its calls have used, at the end of the agent.
func (c *Control) Serve(ctx context.Context, run agent.Run, listener *os.File) (used func() []agent.ModelUse, err error) {
	s := newServed(run, listener)
	if s.contents, err = c.open(run); err != nil {
		listener.Close()
		return nil, err
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		listener.Close()
		s.contents.leave()
		return nil, errClosed
	}
	if before := c.early[run.Spec.ID]; before != nil {
		delete(c.early, run.Spec.ID)
		s.tally = before.tally // in which calls that were found may still be counted
	}
	c.runs[run.Spec.ID] = s
	c.mu.Unlock()
	f, err := c.front(run.Owner.UID)
	if err == nil {
		err = f.serve(s)
	}
	if err != nil {
		c.leave(s)
		return nil, fmt.Errorf("cannot serve models: %w", err)
	}
	context.AfterFunc(ctx, func() { c.leave(s) })
	return s.spent, nil
}

var errClosed = errors.New("models are not served any more")

// leave ends what a run has.
func (c *Control) leave(s *served) {
	c.mu.Lock()
	f := c.fronts[s.run.Owner.UID]
	current := c.runs[s.run.Spec.ID] == s // else the run has started again, and is served anew
	if current {
		delete(c.runs, s.run.Spec.ID)
	}
	c.mu.Unlock()
	s.listener.Close()
	s.contents.leave()
	if f != nil && current {
		_ = f.conn.Send(link.ToFront{Leave: s.run.Spec.ID}) // a process that is gone serves nobody
	}
}

// Close ends the processes. What calls in flight had reserved counts as used; but where there
// are journals, the processes go on with these calls, and the next control settles them.
func (c *Control) Close() error {
	c.mu.Lock()
	c.closed = true
	flying := c.options.Journals != "" && len(c.calls) > 0
	all := []*process{}
	for _, f := range c.fronts {
		all = append(all, f.process)
	}
	for _, p := range c.scripts {
		all = append(all, p)
	}
	if c.upstream != nil {
		all = append(all, c.upstream.process)
	}
	c.mu.Unlock()
	for _, p := range all {
		if flying {
			p.leave()
		} else {
			p.end()
		}
	}
	if c.options.Journals != "" {
		os.Remove(c.options.Journals) // it fails while a journal is in it
	}
	return nil
}

// front returns the clove-models of an owner.
func (c *Control) front(uid uint32) (*front, error) {
	return obtain(c, func() *front {
		if f := c.fronts[uid]; f != nil && !f.ended() {
			return f
		}
		return nil
	}, func() (*front, error) {
		p, err := c.start(frontProgram)
		if err != nil {
			return nil, err
		}
		return &front{process: p, control: c, uid: uid, lists: make(chan struct{}, maxLists), calls: map[uint64]*call{}}, nil
	}, func(f *front) {
		c.fronts[uid] = f
		go f.receive()
	})
}

// obtain returns what find finds, else what begin starts, which keep notes. find and keep are
// called with c.mu held, begin without: the start of a process takes time, and calls go on
// meanwhile.
func obtain[P interface {
	comparable
	end()
}](c *Control, find func() P, begin func() (P, error), keep func(P)) (P, error) {
	var none P
	look := func() (P, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.closed {
			return none, errClosed
		}
		return find(), nil
	}
	p, err := look()
	if err != nil || p != none {
		return p, err
	}
	c.starts.Lock()
	defer c.starts.Unlock()
	if p, err = look(); err != nil || p != none { // it was started meanwhile
		return p, err
	}
	if p, err = begin(); err != nil {
		return none, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		go p.end()
		return none, errClosed
	}
	keep(p)
	return p, nil
}

// front is one clove-models.
type front struct {
	*process
	control *Control
	uid     uint32

	lists chan struct{} // places

	mu       sync.Mutex // guards the following
	calls    map[uint64]*call
	deciding int // calls whose answer is not sent
}

// maxLists bounds the lists of one clove-models that are made at once.
const maxLists = 16

// serve passes a run's listener.
func (f *front) serve(s *served) error {
	return f.conn.Send(link.ToFront{Serve: &link.Serve{Run: s.run.Spec.ID}}, s.listener)
}

// receive takes messages until the process ends, and replaces it then.
func (f *front) receive() {
	for {
		var m link.FromFront
		files, err := f.conn.Receive(&m)
		packet.CloseAll(files) // an honest one sends none
		if err != nil {
			break
		}
		switch {
		case m.Begin != nil:
			f.begin(*m.Begin)
		case m.List != nil:
			f.list(*m.List)
		case m.Cancel != 0:
			f.cancel(m.Cancel)
		}
	}
	f.end()
	if f.left.Load() {
		return // its calls go on
	}
	f.mu.Lock()
	for _, k := range f.calls {
		k.gone()
	}
	f.mu.Unlock()
	f.control.replace(f)
}

// replace starts another clove-models for the runs that one served which has ended. One that
// ended soon is replaced later: an agent may know how to end it. Connections wait meanwhile.
func (c *Control) replace(old *front) {
	time.Sleep(c.pause - time.Since(old.started))
	for _, s := range c.servedBefore(old) {
		c.options.Log.Warn("clove-models has ended and is replaced", "owner", old.uid, "reason", old.reason())
		f, err := c.front(old.uid)
		if err == nil {
			err = f.serve(s)
		}
		switch {
		case !c.serves(s):
			if f != nil {
				_ = f.conn.Send(link.ToFront{Leave: s.run.Spec.ID}) // as leave does
			}
		case err != nil:
			c.options.Log.Error("a run has no models any more", "run", s.run.Spec.ID, "error", err)
		}
	}
}

// servedBefore forgets a clove-models that has ended, and returns the runs that it served.
func (c *Control) servedBefore(old *front) (runs []*served) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.fronts[old.uid] != old {
		return nil
	}
	delete(c.fronts, old.uid)
	for _, s := range c.runs {
		if s.run.Owner.UID == old.uid {
			runs = append(runs, s)
		}
	}
	return runs
}

// serves reports whether a run has not left.
func (c *Control) serves(s *served) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs[s.run.Spec.ID] == s
}

// servedBy returns a run that this clove-models serves; nil for any other that it names.
func (f *front) servedBy(run agent.ID) *served {
	f.control.mu.Lock()
	defer f.control.mu.Unlock()
	if s := f.control.runs[run]; s != nil && s.run.Owner.UID == f.uid {
		return s
	}
	return nil
}

// list answers which models a run may call.
func (f *front) list(l link.List) {
	select {
	case f.lists <- struct{}{}:
		go func() {
			defer func() { <-f.lists }()
			f.answerList(l)
		}()
	default:
		_ = f.conn.Send(link.ToFront{Refuse: &link.Refuse{Number: l.Number, Reason: link.ReasonBusy, Message: "too many lists are asked for", After: 1}})
	}
}

func (f *front) answerList(l link.List) {
	names := []string{}
	if s := f.servedBy(l.Run); s != nil {
		for _, name := range f.control.options.Config().Names(s.run.Owner.UID, s.groups) {
			if ok, err := f.control.options.Ledger.Allowed(s.run, "model:"+name); ok && err == nil {
				names = append(names, name)
			}
		}
	}
	_ = f.conn.Send(link.ToFront{Names: &link.Names{Number: l.Number, Names: names}})
}
