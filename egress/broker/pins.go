package broker

import (
	"container/list"
	"net/netip"
	"slices"
	"sync"
	"time"

	"clove.run/clove/egress"
)

// How long an answer is valid for connections. Programs use an answer for longer than its
// TTL (browsers a minute, Java half a minute), and many load balancers set a TTL shorter
// than the time to connect.
const (
	pinLeast = time.Minute
	pinMost  = 24 * time.Hour
	pinGrace = 5 * time.Minute
)

// maxPins bounds the pairs of name and address for one agent. Beyond it the pin that was
// refreshed longest ago is removed. A connection to it is then denied until its name is
// looked up again.
const maxPins = 8192

// maxNames bounds the names of one address. Under a wildcard rule an agent can make up any
// number of names, and each connection to the address checks all of them. Few programs use
// more names of one server at once.
const maxNames = 64

// pins remember which addresses the agent was given as answers for which names. A
// connection shows an address only; the pins say by which names the agent can have found
// it.
type pins struct {
	now func() time.Time

	mu     sync.Mutex // guards the fields below
	byName map[egress.Name]map[netip.Addr]*pin
	byAddr map[netip.Addr]map[egress.Name]*pin
	order  *list.List // of *pin, the one refreshed longest ago first
}

// pin is one pair of name and address that an answer contained.
type pin struct {
	name    egress.Name
	addr    netip.Addr
	expires time.Time
	element *list.Element
}

func newPins(now func() time.Time) *pins {
	return &pins{now: now, byName: map[egress.Name]map[netip.Addr]*pin{}, byAddr: map[netip.Addr]map[egress.Name]*pin{}, order: list.New()}
}

// add pins addr to name, or refreshes the pin. A shorter TTL does not shorten an earlier
// answer's pin.
func (p *pins) add(name egress.Name, addr netip.Addr, ttl time.Duration) {
	expires := p.now().Add(min(max(ttl, pinLeast), pinMost) + pinGrace)
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.byName[name][addr]; known != nil {
		if expires.After(known.expires) {
			known.expires = expires
		}
		p.order.MoveToBack(known.element)
		return
	}
	if p.order.Len() >= maxPins {
		// One in, one out, so the bound holds without a goroutine that cleans up.
		p.remove(p.order.Front().Value.(*pin))
	}
	if names := p.byAddr[addr]; len(names) >= maxNames {
		p.remove(firstToExpire(names))
	}
	fresh := &pin{name: name, addr: addr, expires: expires}
	fresh.element = p.order.PushBack(fresh)
	if p.byName[name] == nil {
		p.byName[name] = map[netip.Addr]*pin{}
	}
	if p.byAddr[addr] == nil {
		p.byAddr[addr] = map[egress.Name]*pin{}
	}
	p.byName[name][addr], p.byAddr[addr][name] = fresh, fresh
}

// firstToExpire chooses the pin that an address with too many names loses.
func firstToExpire(names map[egress.Name]*pin) *pin {
	var first *pin
	for _, pin := range names {
		if first == nil || pin.expires.Before(first.expires) {
			first = pin
		}
	}
	return first
}

// names returns the names that led to addr, sorted, and removes expired pins on the way.
func (p *pins) names(addr netip.Addr) []egress.Name {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	var names []egress.Name
	for name, pin := range p.byAddr[addr] {
		if now.After(pin.expires) {
			p.remove(pin)
			continue
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// addresses returns the addresses of name, the latest expiry first.
func (p *pins) addresses(name egress.Name) []netip.Addr {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	var alive []*pin
	for _, pin := range p.byName[name] {
		if now.After(pin.expires) {
			p.remove(pin)
			continue
		}
		alive = append(alive, pin)
	}
	slices.SortFunc(alive, func(a, b *pin) int {
		if by := b.expires.Compare(a.expires); by != 0 {
			return by
		}
		return a.addr.Compare(b.addr)
	})
	addrs := make([]netip.Addr, len(alive))
	for i, pin := range alive {
		addrs[i] = pin.addr
	}
	return addrs
}

// drop removes the pins of all names for which keep returns false.
func (p *pins) drop(keep func(egress.Name) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, pins := range p.byName {
		if keep(name) {
			continue
		}
		for _, pin := range pins {
			p.remove(pin)
		}
	}
}

// remove requires p.mu.
func (p *pins) remove(gone *pin) {
	p.order.Remove(gone.element)
	delete(p.byName[gone.name], gone.addr)
	if len(p.byName[gone.name]) == 0 {
		delete(p.byName, gone.name)
	}
	delete(p.byAddr[gone.addr], gone.name)
	if len(p.byAddr[gone.addr]) == 0 {
		delete(p.byAddr, gone.addr)
	}
}
