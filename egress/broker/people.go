package broker

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/egress"
	"clove.run/clove/egress/dnsmsg"
	"clove.run/clove/egress/wire"
)

// standinRange is set aside for benchmarks (RFC 2544): no server of the internet has an address in it.
var standinRange = netip.MustParsePrefix("198.18.0.0/15")

const (
	// standinsMost bounds the names of a run that have a stand-in.
	standinsMost = 4096
	// standinTTL is short: once the name is allowed, its own addresses are the answer.
	standinTTL = 5 * time.Second
	// maxHeld bounds the connections that wait for an answer of people.
	maxHeld = 64
)

// people are asked about connections that no rule covers. A name that they may allow has an address of the run's
// own, a stand-in: the agent can connect to it, and no question for the name leaves the host before they have allowed
// it. A name keeps its stand-in to the end of the run, because programs keep addresses.
type people struct {
	ask  func(context.Context, Decision) *egress.Rules // nil: nothing is asked
	hold time.Duration                                 // a connection is held so long

	mu     sync.Mutex                    // guards the fields below
	held   map[uint64]context.CancelFunc // the connections that wait, by the number of the request
	byName map[egress.Name]netip.Addr
	names  []egress.Name                    // by the place of the address in standinRange
	looks  map[netip.AddrPort]*egress.Rules // answers for one connection, whose client must show a name first
}

func newPeople(c Config) *people {
	return &people{ask: c.Ask, hold: cmp.Or(min(c.Hold, wire.HoldMost), wire.HoldMost), held: map[uint64]context.CancelFunc{}, byName: map[egress.Name]netip.Addr{}, looks: map[netip.AddrPort]*egress.Rules{}}
}

// may reports whether people may allow what was refused.
func (p *people) may(v egress.Verdict) bool {
	return p.ask != nil && unmentioned(v)
}

// decide asks about what was refused, and returns the rules that hold from now on; nil: it stays refused. As few
// connections are held at once as people can answer for. id is the number of the request.
func (p *people) decide(ctx context.Context, id uint64, d Decision, v egress.Verdict) *egress.Rules {
	if !p.may(v) {
		return nil
	}
	if own := p.take(d.Address); own != nil {
		return own
	}
	ctx, cancel := context.WithTimeout(ctx, p.hold)
	defer cancel()
	if !p.begin(id, cancel) {
		return nil
	}
	defer p.end(id)
	return p.ask(ctx, d)
}

// begin takes a place for a connection that waits; false: there is none.
func (p *people) begin(id uint64, cancel context.CancelFunc) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, twice := p.held[id]; twice || len(p.held) >= maxHeld {
		return false
	}
	p.held[id] = cancel
	return true
}

func (p *people) end(id uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.held, id)
}

// noteHeld ends the wait of a connection whose client has gone. Where the kernel does not tell, the end of what the client
// sends counts as the end of the client.
func (p *people) noteHeld(h *wire.Held, in Namespace) {
	p.mu.Lock()
	end, waits := p.held[h.Of]
	p.mu.Unlock()
	if !waits {
		return
	}
	proto := unix.IPPROTO_TCP
	if h.UDP {
		proto = unix.IPPROTO_UDP
	}
	if there, err := in.HasClient(proto, h.Client, h.Target); !there && (err == nil || h.Ended) {
		end()
	}
}

// keep keeps an answer for one connection while its client is asked for a name; take takes it.
func (p *people) keep(target netip.AddrPort, own *egress.Rules) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if own != nil && len(p.looks) < maxHeld {
		p.looks[target] = own
	}
}

func (p *people) take(target netip.AddrPort) *egress.Rules {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := p.looks[target]
	delete(p.looks, target)
	return own
}

// standin returns the address that stands for a name; false: there are too many.
func (p *people) standin(name egress.Name) (netip.Addr, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if addr, known := p.byName[name]; known || len(p.names) >= standinsMost {
		return addr, known
	}
	p.names = append(p.names, name)
	var bytes [4]byte
	first := standinRange.Addr().As4()
	binary.BigEndian.PutUint32(bytes[:], binary.BigEndian.Uint32(first[:])+uint32(len(p.names)))
	p.byName[name] = netip.AddrFrom4(bytes)
	return p.byName[name], true
}

// name returns the name for which an address stands; "": for none.
func (p *people) name(addr netip.Addr) egress.Name {
	if !standinRange.Contains(addr) {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	first, bytes := standinRange.Addr().As4(), addr.As4()
	at := int(binary.BigEndian.Uint32(bytes[:]) - binary.BigEndian.Uint32(first[:]))
	if at < 1 || at > len(p.names) {
		return ""
	}
	return p.names[at-1]
}

// reply answers a question for a name that people may allow, without asking a name server; nil: there are too many names.
func (p *people) reply(name egress.Name, qtype uint16) *dnsmsg.Reply {
	reply := dnsmsg.NewReply(string(name), qtype, dnsmsg.RCodeSuccess)
	if qtype != dnsmsg.TypeA {
		return reply
	}
	addr, free := p.standin(name)
	if !free {
		return nil
	}
	return reply.WithAddresses(standinTTL, addr)
}

// behind finds the true target of a connection to a stand-in. People are asked about the name and the port, where no rule
// decides; then the name is resolved, and its addresses are pinned. Where answer is not nil, it is final, or the client must
// show a name first: they answer for this name and no other. own are the rules of this connection alone.
func (p *people) behind(ctx context.Context, b *Broker, id uint64, kind Kind, asked egress.Connection) (_ egress.Connection, own *egress.Rules, answer *wire.Answer) {
	name := p.name(asked.Target.Addr())
	if name == "" {
		return asked, nil, nil
	}
	asked.Pinned = []egress.Name{name}
	decision := func(v egress.Verdict) Decision {
		d := decisionOn(kind, OutcomeDenied, asked, v)
		d.Name = string(name)
		return d
	}
	refuse := func(v egress.Verdict) *wire.Answer {
		d := decision(v)
		b.log(d)
		answer := denied(d)
		return &answer
	}
	switch {
	case egress.ShowsName(asked.Proto, asked.Target.Port()) && !asked.Looked:
		return asked, nil, &wire.Answer{Result: wire.ResultVerify}
	case asked.Shown != "" && asked.Shown != name:
		return asked, nil, refuse(egress.Verdict{Reason: egress.ReasonMismatch, Detail: fmt.Sprintf("%s did not lead to this address, %s did", asked.Shown, name)})
	}
	verdict := b.connections.currentRules().ConnectName(asked.Proto, name, asked.Target.Port())
	if p.may(verdict) {
		own = b.reconsider(ctx, id, decision(verdict), verdict)
		verdict = with(b.connections.currentRules(), own, func(r *egress.Rules) egress.Verdict { return r.ConnectName(asked.Proto, name, asked.Target.Port()) })
	}
	if !verdict.Allowed {
		return asked, nil, refuse(verdict)
	}
	known := b.pins.addresses(name)
	for _, qtype := range []uint16{dnsmsg.TypeA, dnsmsg.TypeAAAA} {
		if len(known) > 0 {
			break
		}
		found := b.lookup(ctx, &wire.Lookup{Name: string(name), Type: qtype}, own)
		if found.Result == wire.ResultDenied {
			return asked, nil, &found
		}
		known, answer = b.pins.addresses(name), &wire.Answer{Result: wire.ResultUnreachable, Rule: found.Rule}
	}
	if len(known) == 0 {
		return asked, nil, answer
	}
	asked.Target = netip.AddrPortFrom(known[0], asked.Target.Port())
	asked.Pinned = b.pins.names(known[0])
	return asked, own, nil
}
