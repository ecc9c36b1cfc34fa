package broker

import (
	"container/list"
	"net/netip"
	"slices"
	"sync"
	"time"

	"clove.run/clove/egress"
)

// How long an answer counts. Programs keep an answer for longer than its time
// to live says (a minute in browsers, half of one in Java), and many answers of
// load balancers live for less than a connection takes to be made.
const (
	pinLeast = time.Minute
	pinMost  = 24 * time.Hour
	pinGrace = 5 * time.Minute
)

// maxPins bounds the pairs of name and address of one agent. Beyond it the pin
// that was refreshed longest ago goes: a connection to it is then denied until
// its name is looked up again.
const maxPins = 8192

// maxNames bounds the names of one address: under a wildcard an agent can make
// up any number of them, and each connection to the address asks about all. Few
// programs use more names of one server at once.
const maxNames = 64

// pins remember which addresses were given to the agent as answers for which
// names.
type pins struct {
	now func() time.Time

	mu     sync.Mutex // guards the fields below
	byName map[egress.Name]map[netip.Addr]*pin
	byAddr map[netip.Addr]map[egress.Name]*pin
	order  *list.List // of *pin, the one refreshed longest ago in front
}

type pin struct {
	name    egress.Name
	addr    netip.Addr
	expires time.Time
	element *list.Element
}

func newPins(now func() time.Time) *pins {
	return &pins{now: now, byName: map[egress.Name]map[netip.Addr]*pin{}, byAddr: map[netip.Addr]map[egress.Name]*pin{}, order: list.New()}
}

// add pins addr to name, or refreshes the pin. A shorter time to live does not
// shorten an older answer's.
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

func firstToExpire(names map[egress.Name]*pin) *pin {
	var first *pin
	for _, pin := range names {
		if first == nil || pin.expires.Before(first.expires) {
			first = pin
		}
	}
	return first
}

// names returns the names that led to addr, sorted. Dead pins go on the way.
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

// addresses returns where name led, the longest-lived first.
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

// drop removes the pins of all names that keep does not want.
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

// remove wants p.mu held.
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
