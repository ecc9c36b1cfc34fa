package daemon

import (
	"cmp"
	"slices"

	"clove.run/clove/agent"
	"clove.run/clove/store"
)

// ringSize is how many of the last events the cache keeps, once they were read: as many as
// the store does.
const ringSize = 8192

// reach reads the events from before cloved's start, if some of them come after
// the number.
func (c *cache) reach(after uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if after >= c.first {
		return nil
	}
	var older []agent.RunEvent
	err := c.records.with(func(s *store.Store) (err error) { older, _, err = s.Events(0, ringSize); return err })
	if err != nil {
		return err
	}
	// Changes since the load are in the cache already.
	newer := slices.IndexFunc(older, func(o agent.RunEvent) bool { return o.Sequence > c.first })
	if newer >= 0 {
		older = older[:newer]
	}
	c.past, c.first = append(older, c.past...), 0
	return nil
}

// newest is the number of the last event.
func (c *cache) newest() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// since returns the events after the number, the number of the newest, and
// whether some in between are not in the cache, or no longer (reach).
func (c *cache) since(after uint64) (news []agent.RunEvent, last uint64, gap bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, _ := slices.BinarySearchFunc(c.past, after+1, func(o agent.RunEvent, n uint64) int { return cmp.Compare(o.Sequence, n) })
	// A copy: the events behind it may be moved when the cache forgets the oldest.
	news = slices.Clone(c.past[i:])
	// A number that this store has not given yet comes from another store.
	gap = len(news) > 0 && news[0].Sequence != after+1 || len(news) == 0 && after != c.last
	return news, c.last, gap
}

// event returns the event with a number; false: there is none, or no longer.
func (c *cache) event(number uint64) (agent.RunEvent, bool) {
	if number == 0 || c.refresh() != nil || c.reach(number-1) != nil {
		return agent.RunEvent{}, false
	}
	news, _, _ := c.since(number - 1)
	if len(news) == 0 || news[0].Sequence != number {
		return agent.RunEvent{}, false
	}
	return news[0], true
}

// missed is how many events after the number are not among the news.
func missed(after, last uint64, news []agent.RunEvent) uint64 {
	if len(news) == 0 {
		return last - after
	}
	return news[0].Sequence - after - 1
}

// lastRecord makes a record of the events of a run that was removed with its end. It has
// less than the real one, which was never stored: status, exit code and times, and no
// usage.
func (c *cache) lastRecord(run agent.Run) (agent.Record, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range slices.Backward(c.past) {
		if o.ID == run.Spec.ID && o.ExitCode != nil {
			return agent.Record{Version: agent.RecordVersion, ID: o.ID, Name: o.Name, Namespace: run.Spec.Kernel.Namespace, Parent: run.Parent,
				Command: run.Spec.Command, Started: run.Started, Ended: o.Time, WallMS: o.Time.Sub(run.Started).Milliseconds(), Status: o.Status, ExitCode: *o.ExitCode, Denials: []agent.Denial{},
				Enforced: map[string]string{}, Unenforced: []string{}, Policy: run.Spec.Policy, Manifest: run.Spec.Manifest}, true
		}
	}
	return agent.Record{}, false
}
