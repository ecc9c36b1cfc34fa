package resolver

import (
	"container/list"
	"sync"
	"time"

	"clove.run/clove/egress/dnsmsg"
)

const (
	maxEntries = 1024
	// maxEntryBytes keeps the whole cache below 16 MiB. Larger answers are rare and are
	// requested again.
	maxEntryBytes = 16 << 10

	minLife         = time.Second // also for a TTL of 0: the many connections of one page make one query
	maxLife         = time.Hour
	maxNegativeLife = time.Minute
)

// entry is a packed answer: its size is known, and each caller gets its own copy.
type entry struct {
	message       []byte
	born, expires time.Time
}

// reply subtracts the age from the TTLs, so that a cached answer does not live longer than
// the zone's owner wants.
func (e entry) reply(now time.Time) (*dnsmsg.Reply, error) {
	reply, err := dnsmsg.ParseReply(e.message)
	if err != nil {
		return nil, err
	}
	reply.Age(now.Sub(e.born))
	return reply, nil
}

// lifetime is how long an answer is kept. It is 0 for failures, and for a negative answer
// without a TTL (RFC 2308 section 5).
func lifetime(reply *dnsmsg.Reply) time.Duration {
	ttl, known := reply.TTL()
	switch {
	case !known || (reply.RCode() != dnsmsg.RCodeSuccess && reply.RCode() != dnsmsg.RCodeNameError):
		return 0
	case reply.Negative():
		return min(max(ttl, minLife), maxNegativeLife)
	default:
		return min(max(ttl, minLife), maxLife)
	}
}

// cache keeps the most recently used entries.
type cache struct {
	mu     sync.Mutex // guards the fields below
	byKey  map[string]*list.Element
	recent *list.List // of cached, most recently used first
}

type cached struct {
	key string
	entry
}

func newCache() *cache {
	return &cache{byKey: map[string]*list.Element{}, recent: list.New()}
}

// get removes the entry if it has expired; put removes others when the cache is full.
func (c *cache) get(key string, now time.Time) (entry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.byKey[key]
	if !ok {
		return entry{}, false
	}
	kept := element.Value.(cached)
	if !now.Before(kept.expires) {
		c.remove(element)
		return entry{}, false
	}
	c.recent.MoveToFront(element)
	return kept.entry, true
}

// put evicts the entry that was used longest ago when the cache is full.
func (c *cache) put(key string, e entry) {
	if len(e.message) > maxEntryBytes {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, ok := c.byKey[key]; ok {
		c.remove(element)
	}
	c.byKey[key] = c.recent.PushFront(cached{key: key, entry: e})
	if c.recent.Len() > maxEntries {
		c.remove(c.recent.Back())
	}
}

// remove requires mu.
func (c *cache) remove(element *list.Element) {
	delete(c.byKey, element.Value.(cached).key)
	c.recent.Remove(element)
}
