package runtime

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/store"
)

// denials are what the sandbox refused the agent. Each target is reported once, and counted.
// Adding one never blocks. The gate keeps those of the network and counts them itself.
type denials struct {
	id      agent.ID
	first   func(d agent.Denial, reason, hint string) // nil: no report
	notices func() *outbox
	news    chan struct{} // has an element while there are events to store

	lock    sync.Mutex
	byKey   map[denialKey]*agent.Denial
	perKind map[string]int
	events  []agent.RunEvent // not yet stored
	noted   int              // of all denials, how many became events
	noticed bool             // notices exist
	storing sync.WaitGroup
}

type denialKey struct{ kind, target string }

// Bounds, so that no agent fills the supervisor's memory, the record or the log of events.
const (
	maxOfKind    = 128
	otherTargets = "(other targets)" // the rest of a kind
	maxTarget    = 1024              // bytes of a target or a program
	maxNoted     = 64                // of the first denials are events
)

func newDenials(id agent.ID, first func(d agent.Denial, reason, hint string)) *denials {
	all := &denials{id: id, first: first, news: make(chan struct{}, 1), byKey: map[denialKey]*agent.Denial{}, perKind: map[string]int{}}
	all.notices = sync.OnceValue(func() *outbox { return newOutbox(len(agent.DenialKinds) * (maxOfKind + 1)) })
	return all
}

// count adds one more to a target that is known.
func (all *denials) count(kind, target string) (known bool) {
	all.lock.Lock()
	defer all.lock.Unlock()
	d := all.byKey[denialKey{kind, bounded(target)}]
	if d == nil {
		d = all.byKey[denialKey{kind, otherTargets}]
	}
	if d != nil {
		d.Count++
	}
	return d != nil
}

// add counts a denial whose target is not known yet, and reports it.
func (all *denials) add(d agent.Denial, reason, hint string) {
	all.lock.Lock()
	defer all.lock.Unlock()
	d.Time, d.Count, d.Target, d.Program = time.Now().UTC(), 1, bounded(d.Target), bounded(d.Program)
	if all.perKind[d.Kind] == maxOfKind {
		d = agent.Denial{Time: d.Time, Kind: d.Kind, Target: otherTargets, Count: 1}
		reason, hint = "no more of them are listed separately", ""
	}
	if known := all.byKey[denialKey{d.Kind, d.Target}]; known != nil { // of another listener meanwhile
		known.Count++
		return
	}
	kept := d
	all.byKey[denialKey{d.Kind, d.Target}] = &kept
	all.perKind[d.Kind]++
	all.event(d)
	if all.first != nil && !isOptional(kept) {
		all.noticed = true
		all.notices().put(func() { all.first(d, reason, hint) })
	}
}

// note makes an event of a denial that is kept elsewhere.
func (all *denials) note(d agent.Denial) {
	all.lock.Lock()
	defer all.lock.Unlock()
	all.event(d)
}

// event is called with the lock.
func (all *denials) event(d agent.Denial) {
	if all.noted == maxNoted {
		return
	}
	all.noted++
	detail := d.Kind + " " + d.Target
	if d.Program != "" {
		detail += " by " + d.Program
	}
	if d.Rule != "" {
		detail += " (" + d.Rule + ")"
	}
	all.events = append(all.events, agent.RunEvent{ID: all.id, Time: d.Time, Kind: agent.RunDenied, Detail: detail})
	select {
	case all.news <- struct{}{}:
	default:
	}
}

// store writes the events that wait. A denial that cannot be stored is in the record all the same.
func (all *denials) store(with func(func(*store.Store) error) error) {
	all.lock.Lock()
	events := all.events
	all.events = nil
	all.lock.Unlock()
	if len(events) > 0 {
		_ = with(func(s *store.Store) error { return s.Note(events) })
	}
}

// storeAside is store that does not wait for the disk.
func (all *denials) storeAside(with func(func(*store.Store) error) error) {
	all.storing.Add(1)
	go func() { defer all.storing.Done(); all.store(with) }()
}

// list has them in the order of their first time. nil is of a run whose supervisor is gone.
func (all *denials) list() []agent.Denial {
	if all == nil {
		return nil
	}
	all.lock.Lock()
	defer all.lock.Unlock()
	var list []agent.Denial
	for _, d := range all.byKey {
		list = append(list, *d)
	}
	slices.SortFunc(list, byTime)
	return list
}

func byTime(a, b agent.Denial) int { return a.Time.Compare(b.Time) }

// close writes the remaining notices and events.
func (all *denials) close(with func(func(*store.Store) error) error) {
	if all == nil {
		return
	}
	if all.noticed {
		_ = all.notices().until(func() error { return nil })
	}
	all.storing.Wait()
	all.store(with)
}

func bounded(text string) string { return text[:min(len(text), maxTarget)] }

// refusals counts what the agent was refused: calls, and connections by the gate. Counting
// never waits for the supervisor's loop.
type refusals struct {
	count atomic.Int64
	news  chan struct{} // has an element while the loop has not looked
}

func newRefusals() *refusals { return &refusals{news: make(chan struct{}, 1)} }

func (r *refusals) add() {
	r.count.Add(1)
	select {
	case r.news <- struct{}{}:
	default: // the loop will see this one too
	}
}

// outboxPatience bounds the wait of a run's end for a reader that does not read.
const outboxPatience = 2 * time.Second

// outbox runs functions that can block (writes to a stopped terminal, or to a pipe without
// a reader) on a goroutine of its own. In the broker, such a write would hold up the end of
// the run and the loop that enforces the limits.
type outbox struct {
	work  chan func()
	over  chan struct{} // closed: what is left is given up
	ended chan struct{} // closed: all is done
}

// newOutbox starts the one goroutine that does the work, so everything is done in the order
// of put. It may outlive until, stuck in a write that never returns; the process's end ends
// it.
func newOutbox(capacity int) *outbox {
	o := &outbox{work: make(chan func(), capacity), over: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(o.ended)
		for f := range o.work {
			f()
		}
	}()
	return o
}

// put waits while the queue is full: nothing is lost before the end, and the
// agent waits with it.
func (o *outbox) put(f func()) {
	select {
	case o.work <- f:
	case <-o.over:
	}
}

// until calls stop, which ends the last caller of put, and does the remaining work
// meanwhile. It gives up after outboxPatience.
func (o *outbox) until(stop func() error) error {
	patience := time.AfterFunc(outboxPatience, func() { close(o.over) })
	defer patience.Stop()
	err := stop()
	close(o.work)
	select {
	case <-o.ended:
	case <-o.over:
	}
	return err
}
