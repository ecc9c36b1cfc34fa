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

// mirror is the store in memory, and the last of what happened.
type mirror struct {
	records records

	mu       sync.Mutex // guards all below
	revision uint64     // of the file, when it was read
	loaded   bool
	last     uint64                  // number of the newest occurrence that was read
	runs     map[agent.ID]*agent.Run // a value is replaced, never changed: readers keep it
	names    map[string]agent.ID
	briefs   map[agent.ID]json.RawMessage // of those that were listed
	past     []agent.RunEvent             // what was read of the last ringSize, and a while longer
	first    uint64                       // number of the newest occurrence that past leaves out until reach
	moved    chan struct{}                // closed and replaced when something changed
}

// ringSize is how much of the past a reader of events can ask for without a
// look into the store.
const ringSize = 8192

func newMirror(r records) *mirror {
	return &mirror{records: r, runs: map[agent.ID]*agent.Run{}, names: map[string]agent.ID{}, briefs: map[agent.ID]json.RawMessage{}, moved: make(chan struct{})}
}

// refresh reads what changed since the last time; it costs two small reads
// when nothing did.
func (m *mirror) refresh() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	revision, err := store.Revision(m.records.path)
	if m.loaded && err == nil && revision == m.revision {
		return nil
	}
	err = m.records.with(func(s *store.Store) error {
		if m.loaded {
			return m.advance(s)
		}
		return m.load(s)
	})
	if err != nil {
		return err
	}
	// Read before the transactions: a change in between is seen the next time.
	m.revision = revision
	return nil
}

// load reads everything. The first time that is all but what happened before:
// hardly anybody asks for it, and everybody would wait for it.
func (m *mirror) load(s *store.Store) error {
	all, err := s.List()
	if err != nil {
		return err
	}
	limit := 0
	if m.loaded { // who follows events goes on where it was
		limit = ringSize
	}
	past, last, err := s.Occurrences(0, limit)
	if err != nil {
		return err
	}
	m.first = 0
	if !m.loaded {
		m.first = last
	}
	clear(m.runs)
	clear(m.names)
	clear(m.briefs)
	for i := range all {
		m.put(&all[i])
	}
	m.past, m.last, m.loaded = past, last, true
	m.broadcast()
	return nil
}

// advance reads the runs that something happened to.
func (m *mirror) advance(s *store.Store) error {
	news, last, err := s.Occurrences(m.last, ringSize)
	if err != nil {
		return err
	}
	if len(news) == 0 {
		return nil
	}
	if news[0].Sequence != m.last+1 || news[len(news)-1].Sequence != last {
		return m.load(s) // too much has happened
	}
	ids := map[agent.ID]bool{}
	for _, o := range news {
		ids[o.ID] = true
	}
	for id := range ids {
		run, err := s.Get(string(id))
		switch {
		case err == nil && run.Spec.ID == id:
			m.put(&run)
		case err == nil || agent.KindOf(err) == agent.KindNotFound:
			m.drop(id)
		default:
			return err
		}
	}
	m.past = append(m.past, news...)
	if len(m.past) > 2*ringSize { // moved once for many
		m.past = append(m.past[:0], m.past[len(m.past)-ringSize:]...)
	}
	m.last = last
	m.broadcast()
	return nil
}

// put takes a run in, or a newer state of one, which may have another name.
func (m *mirror) put(run *agent.Run) {
	m.drop(run.Spec.ID)
	m.runs[run.Spec.ID] = run
	m.names[run.Spec.Name] = run.Spec.ID
}

func (m *mirror) drop(id agent.ID) {
	old, found := m.runs[id]
	if !found {
		return
	}
	delete(m.runs, id)
	delete(m.briefs, id)
	if m.names[old.Spec.Name] == id { // it may be a later run's by now
		delete(m.names, old.Spec.Name)
	}
}

func (m *mirror) broadcast() {
	close(m.moved)
	m.moved = make(chan struct{})
}

// changed returns a channel that is closed at the next change.
func (m *mirror) changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.moved
}

// all returns every run that wanted takes, newest first.
func (m *mirror) all(wanted func(*agent.Run) bool) []agent.Run {
	found := m.list(wanted)
	runs := make([]agent.Run, len(found))
	for i, run := range found {
		runs[i] = *run
	}
	return runs
}

// list is all without a copy of each: what it returns is not to be changed.
func (m *mirror) list(wanted func(*agent.Run) bool) []*agent.Run {
	m.mu.Lock()
	var found []*agent.Run
	for _, run := range m.runs {
		if wanted(run) {
			found = append(found, run)
		}
	}
	m.mu.Unlock()
	slices.SortFunc(found, func(a, b *agent.Run) int {
		return cmp.Or(b.Created.Compare(a.Created), strings.Compare(string(a.Spec.ID), string(b.Spec.ID)))
	})
	return found
}

// current returns the runs that have not ended, and those that one of them
// comes after: what has ended else does not matter to any turn, and there may
// be a lot of it.
func (m *mirror) current() []agent.Run {
	first := map[string]bool{}
	for _, run := range m.list(func(run *agent.Run) bool { return run.State == agent.StateQueued }) {
		for _, name := range run.Spec.After {
			first[name] = true
		}
	}
	return m.all(func(run *agent.Run) bool { return run.State != agent.StateEnded || first[run.Spec.Name] })
}

func (m *mirror) get(id agent.ID) (agent.Run, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if run, found := m.runs[id]; found {
		return *run, true
	}
	return agent.Run{}, false
}

// minPrefix is the shortest part of an id that is taken for one.
const minPrefix = 4

// resolve finds the run that ref means among those that may be seen: an id, a
// name, or the beginning of exactly one id.
func (m *mirror) resolve(ref string, seen func(*agent.Run) bool) (agent.Run, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range []agent.ID{agent.ID(ref), m.names[ref]} {
		if run, found := m.runs[id]; found && seen(run) {
			return *run, nil
		}
	}
	var matches []agent.Run
	for id, run := range m.runs {
		if len(ref) >= minPrefix && strings.HasPrefix(string(id), ref) && seen(run) {
			matches = append(matches, *run)
		}
	}
	switch len(matches) {
	case 1:
		return matches[0], nil
	case 0:
		return agent.Run{}, api.Failure(api.CodeNotFound, "clove ps -a lists the runs", "there is no run %q", ref)
	}
	return agent.Run{}, api.Failure(api.CodeParams, "give more digits of the id", "%q begins more than one id", ref)
}

// reach reads what happened before cloved came, where that is needed to know
// what happened after the number.
func (m *mirror) reach(after uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if after >= m.first {
		return nil
	}
	var older []agent.RunEvent
	err := m.records.with(func(s *store.Store) (err error) { older, _, err = s.Occurrences(0, ringSize); return err })
	if err != nil {
		return err
	}
	newer := slices.IndexFunc(older, func(o agent.RunEvent) bool { return o.Sequence > m.first })
	if newer >= 0 {
		older = older[:newer]
	}
	m.past, m.first = append(older, m.past...), 0
	return nil
}

// newest is the number of the last thing that happened.
func (m *mirror) newest() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

// since returns what happened after the number, the number of the newest, and
// whether something in between is not known here, or no longer (reach).
func (m *mirror) since(after uint64) (news []agent.RunEvent, last uint64, gap bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, _ := slices.BinarySearchFunc(m.past, after+1, func(o agent.RunEvent, n uint64) int { return cmp.Compare(o.Sequence, n) })
	news = slices.Clone(m.past[i:])
	// A number that has not been given yet is one of another store's.
	gap = len(news) > 0 && news[0].Sequence != after+1 || len(news) == 0 && after != m.last
	return news, m.last, gap
}

// missed is how many numbers after the one are not among the news.
func missed(after, last uint64, news []agent.RunEvent) uint64 {
	if len(news) == 0 {
		return last - after
	}
	return news[0].Sequence - after - 1
}

// until waits for a state of the run that satisfies. A run that is gone is
// given as found = false.
func (m *mirror) until(ctx context.Context, id agent.ID, satisfies func(run agent.Run, found bool) bool) (agent.Run, bool, error) {
	for {
		moved := m.changed()
		if err := m.refresh(); err != nil {
			return agent.Run{}, false, err
		}
		if run, found := m.get(id); satisfies(run, found) {
			return run, found, nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return agent.Run{}, false, ctx.Err()
		}
	}
}
