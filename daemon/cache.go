package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/store"
)

// cache is a copy of the store in memory, with the last events.
type cache struct {
	records records

	mu       sync.Mutex // guards all below
	revision uint64     // of the file, when it was read
	loaded   bool
	last     uint64                  // number of the newest event that was read
	runs     map[agent.ID]*agent.Run // a value is replaced, never changed: readers keep it
	names    map[agent.RunName]agent.ID
	briefs   map[agent.ID]json.RawMessage // of those that were listed
	past     []agent.RunEvent             // what was read of the last ringSize, and a while longer; by number, without a gap
	first    uint64                       // number of the newest event that past leaves out until reach
	panic    string                       // the reason of clove panic, while nothing may start; empty: everything may
	moved    chan struct{}                // closed and replaced when something changed
}

func newCache(r records) *cache {
	return &cache{records: r, runs: map[agent.ID]*agent.Run{}, names: map[agent.RunName]agent.ID{}, briefs: map[agent.ID]json.RawMessage{}, moved: make(chan struct{})}
}

// refresh reads what changed since the last time; it costs two small reads when nothing
// did. Callers queue on the lock: the first one reads for all that wait.
func (c *cache) refresh() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	revision, err := store.Revision(c.records.path)
	if c.loaded && err == nil && revision == c.revision {
		return nil
	}
	// A file that is missing or cannot be read comes here, too: opening the store makes it,
	// or gives an error with a hint.
	err = c.records.with(func(s *store.Store) error {
		panicked, err := s.Panic()
		if err != nil {
			return err
		}
		if c.panic = ""; panicked != nil {
			c.panic = panicked.Reason
		}
		if c.loaded {
			return c.advance(s)
		}
		return c.load(s)
	})
	if err != nil {
		return err
	}
	// Read before the transactions: a change in between is seen the next time.
	c.revision = revision
	return nil
}

// panicReason is why nothing may start; empty: everything may.
func (c *cache) panicReason() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.panic
}

// load reads everything; the first time, all but the events before it. Hardly
// any caller asks for those, and every caller would wait for them.
func (c *cache) load(s *store.Store) error {
	all, err := s.List()
	if err != nil {
		return err
	}
	limit := 0
	if c.loaded { // a caller that follows events continues where it was
		limit = ringSize
	}
	past, last, err := s.Events(0, limit)
	if err != nil {
		return err
	}
	c.first = 0
	if !c.loaded {
		c.first = last
	}
	// All of it: runs that were removed in a gap have no event that could still be read.
	clear(c.runs)
	clear(c.names)
	clear(c.briefs)
	for i := range all {
		c.put(&all[i])
	}
	c.past, c.last, c.loaded = past, last, true
	c.broadcast()
	return nil
}

// advance reads the runs that something happened to.
func (c *cache) advance(s *store.Store) error {
	// Every change of a run has its event in the same transaction, so the events name all
	// runs that have to be read.
	news, last, err := s.Events(c.last, ringSize)
	if err != nil {
		return err
	}
	// A transaction without an event changed no run, but for instance the drain.
	if len(news) == 0 {
		return nil
	}
	if news[0].Sequence != c.last+1 || news[len(news)-1].Sequence != last {
		return c.load(s) // more events than the store was asked for
	}
	// Each run once, however many events it has: only its present state is of interest.
	ids := map[agent.ID]bool{}
	for _, o := range news {
		ids[o.ID] = true
	}
	for id := range ids {
		// Get takes any reference. A run with another id is not this one, which is gone.
		run, err := s.Get(string(id))
		switch {
		case err == nil && run.Spec.ID == id:
			c.put(&run)
		case err == nil || agent.KindOf(err) == agent.KindNotFound:
			c.drop(id)
		default:
			return err
		}
	}
	c.past = append(c.past, news...)
	if len(c.past) > 2*ringSize { // dropped at twice the size: one copy for many events
		c.past = append(c.past[:0], c.past[len(c.past)-ringSize:]...)
	}
	c.last = last
	c.broadcast()
	return nil
}

// put stores a run, or a newer state of one, which may have another name.
func (c *cache) put(run *agent.Run) {
	c.drop(run.Spec.ID)
	c.runs[run.Spec.ID] = run
	c.names[run.Name()] = run.Spec.ID
}

// drop forgets a run, its text for lists, and its name.
func (c *cache) drop(id agent.ID) {
	old, found := c.runs[id]
	if !found {
		return
	}
	delete(c.runs, id)
	delete(c.briefs, id)
	if c.names[old.Name()] == id { // a later run may have the name by now
		delete(c.names, old.Name())
	}
}

// broadcast wakes all goroutines that wait for a change; c.mu is held. A closed channel reaches
// any number of waiters, and none of them can delay the goroutine that closes it.
func (c *cache) broadcast() {
	close(c.moved)
	c.moved = make(chan struct{})
}

// changed returns a channel that is closed at the next change.
func (c *cache) changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.moved
}

// all returns every run that is wanted, newest first.
func (c *cache) all(wanted func(*agent.Run) bool) []agent.Run {
	found := c.list(wanted)
	runs := make([]agent.Run, len(found))
	for i, run := range found {
		runs[i] = *run
	}
	return runs
}

// list is all without a copy of each run: the caller must not change them.
func (c *cache) list(wanted func(*agent.Run) bool) []*agent.Run {
	c.mu.Lock()
	var found []*agent.Run
	for _, run := range c.runs {
		if wanted(run) {
			found = append(found, run)
		}
	}
	c.mu.Unlock()
	slices.SortFunc(found, func(a, b *agent.Run) int {
		return cmp.Or(b.Created.Compare(a.Created), strings.Compare(string(a.Spec.ID), string(b.Spec.ID)))
	})
	return found
}

// current returns the runs that have not ended, and those that one of them comes after. The
// other ended runs are nothing to the queue, and there may be many: a look must not take
// longer the more records are kept.
func (c *cache) current() []agent.Run {
	first := map[agent.RunName]bool{}
	for _, run := range c.list(func(run *agent.Run) bool { return run.State == agent.StateQueued }) {
		for _, name := range run.AfterNames() {
			first[name] = true
		}
	}
	return c.all(func(run *agent.Run) bool { return run.State != agent.StateEnded || first[run.Name()] })
}

// get returns the run as the cache has it, without a look at the store.
func (c *cache) get(id agent.ID) (agent.Run, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if run, found := c.runs[id]; found {
		return *run, true
	}
	return agent.Run{}, false
}

// resolve finds the run that ref means for the caller (agent.Resolve).
func (c *cache) resolve(ref string, peer principal) (agent.Run, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, err := agent.Resolve(visible{c, peer}, ref, peer.owner.UID)
	if err != nil {
		return agent.Run{}, api.ErrorOf(err)
	}
	return *c.runs[id], nil
}

// find returns the run of an owner that a name or an id means.
func (c *cache) find(owner uint32, reference string) (agent.Run, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := agent.ID(reference)
	if named, found := c.names[agent.RunName{UID: owner, Name: reference}]; found {
		id = named
	}
	run, found := c.runs[id]
	if !found || run.Owner.UID != owner {
		return agent.Run{}, false
	}
	return *run, true
}

// visible is the agent.Index of what one caller may see. The cache's mu is held.
type visible struct {
	*cache
	peer principal
}

// Has implements agent.Index. Another user's run is absent, as one that does not exist.
func (v visible) Has(id agent.ID) bool {
	run, found := v.runs[id]
	return found && v.peer.sees(run)
}

// Named implements agent.Index.
func (v visible) Named(name agent.RunName) (agent.ID, bool) {
	id, found := v.names[name]
	return id, found && v.Has(id)
}

// Elsewhere implements agent.Index. It takes the owner with the lowest number, because a
// map has another order each time and an error should not.
func (v visible) Elsewhere(name string) (other agent.RunName, found bool) {
	for n, id := range v.names {
		if n.Name == name && v.Has(id) && (!found || n.UID < other.UID) {
			other, found = n, true
		}
	}
	return other, found
}

// Beginning implements agent.Index.
func (v visible) Beginning(prefix string) (ids []agent.ID) {
	for id := range v.runs {
		if len(ids) < 2 && strings.HasPrefix(string(id), prefix) && v.Has(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// tally counts the runs in each state, and returns those that start or run.
func (c *cache) tally() (states map[agent.State]int, live []agent.Run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	states = map[agent.State]int{}
	for _, run := range c.runs {
		states[run.State]++
		if run.State == agent.StateStarting || run.State == agent.StateRunning {
			live = append(live, *run)
		}
	}
	return states, live
}

// until waits for a state of the run that satisfies the caller. For a run that is gone,
// found is false. A change by another process is noticed because the reconciler refreshes
// the cache whenever the state directory changes.
func (c *cache) until(ctx context.Context, id agent.ID, satisfies func(run agent.Run, found bool) bool) (agent.Run, bool, error) {
	for {
		// Taken before the look: a change between the look and the wait closes it.
		moved := c.changed()
		if err := c.refresh(); err != nil {
			return agent.Run{}, false, err
		}
		if run, found := c.get(id); satisfies(run, found) {
			return run, found, nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return agent.Run{}, false, ctx.Err()
		}
	}
}
