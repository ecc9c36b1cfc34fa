package broker

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"sync"
	"time"

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

// standins are addresses of the run's own. Each stands for a name that no rule covers, and that people may allow: the
// agent can connect to it, and no question for the name leaves the host before they do. A name keeps its stand-in to
// the end of the run, because programs keep addresses.
type standins struct {
	mu     sync.Mutex // guards the fields below
	byName map[egress.Name]netip.Addr
	names  []egress.Name // by the place of the address in standinRange
}

func newStandins() *standins { return &standins{byName: map[egress.Name]netip.Addr{}} }

// of returns the stand-in of a name; false: there are too many.
func (s *standins) of(name egress.Name) (netip.Addr, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if addr, known := s.byName[name]; known || len(s.names) >= standinsMost {
		return addr, known
	}
	s.names = append(s.names, name)
	var bytes [4]byte
	first := standinRange.Addr().As4()
	binary.BigEndian.PutUint32(bytes[:], binary.BigEndian.Uint32(first[:])+uint32(len(s.names)))
	s.byName[name] = netip.AddrFrom4(bytes)
	return s.byName[name], true
}

// name returns the name for which an address stands; "": for none.
func (s *standins) name(addr netip.Addr) egress.Name {
	if !standinRange.Contains(addr) {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	first, bytes := standinRange.Addr().As4(), addr.As4()
	at := int(binary.BigEndian.Uint32(bytes[:]) - binary.BigEndian.Uint32(first[:]))
	if at < 1 || at > len(s.names) {
		return ""
	}
	return s.names[at-1]
}

// asks reports whether people may allow what was refused.
func (b *Broker) asks(v egress.Verdict) bool {
	return b.config.Ask != nil && !v.Allowed && (v.Reason == egress.ReasonNoRule || v.Reason == egress.ReasonPort)
}

// standin answers a question for a name that people may allow, without asking a name server.
func (b *Broker) standin(name egress.Name, l *wire.Lookup, verdict egress.Verdict) wire.Answer {
	reply := dnsmsg.NewReply(string(name), l.Type, dnsmsg.RCodeSuccess)
	if l.Type == dnsmsg.TypeA {
		addr, free := b.standins.of(name)
		if !free {
			verdict.Detail = fmt.Sprintf("%s is not allowed, and the run has asked for %d such names", name, standinsMost)
			return b.denyName(nameDecision(OutcomeDenied, name, verdict), traffic{})
		}
		reply = reply.WithAddresses(standinTTL, addr)
	}
	return b.answerWith(name, reply, egress.Verdict{Allowed: true, Reason: ReasonStandin}, traffic{})
}

// behind finds the true target of a connection to a stand-in. People are asked about the name and the port, where no rule
// decides; then the name is resolved, and its addresses are pinned. looked says whether the client's first bytes were
// read. Where answer is not nil, it is final, or the name must be read first.
func (b *Broker) behind(ctx context.Context, kind Kind, asked egress.Connection) (egress.Connection, *wire.Answer) {
	name := b.standins.name(asked.Target.Addr())
	asked.Pinned = []egress.Name{name}
	named := func(v egress.Verdict) Decision {
		d := decisionOn(kind, OutcomeDenied, asked, v)
		d.Name = string(name)
		return d
	}
	final := func(v egress.Verdict) *wire.Answer {
		d := named(v)
		b.log(d)
		answer := denied(d)
		return &answer
	}
	// A client that shows its name shows it before people are asked: they answer for this name and no other.
	switch {
	case egress.ShowsName(asked.Proto, asked.Target.Port()) && !asked.Looked:
		return asked, &wire.Answer{Result: wire.ResultVerify}
	case asked.Shown != "" && asked.Shown != name:
		return asked, final(egress.Verdict{Reason: egress.ReasonMismatch, Detail: fmt.Sprintf("%s did not lead to this address, %s did", asked.Shown, name)})
	}
	verdict := b.connections.currentRules().ConnectName(asked.Proto, name, asked.Target.Port())
	if b.reconsider(ctx, named(verdict), verdict) {
		verdict = b.connections.currentRules().ConnectName(asked.Proto, name, asked.Target.Port())
	}
	if !verdict.Allowed {
		return asked, final(verdict)
	}
	addr, refusal := b.address(ctx, name)
	if refusal != nil {
		return asked, refusal
	}
	asked.Target = netip.AddrPortFrom(addr, asked.Target.Port())
	asked.Pinned = b.pins.names(addr)
	return asked, nil
}

// address returns an address that is pinned to an allowed name, or resolves the name. The answer says why there is none.
func (b *Broker) address(ctx context.Context, name egress.Name) (netip.Addr, *wire.Answer) {
	var last wire.Answer
	for _, kind := range []uint16{dnsmsg.TypeA, dnsmsg.TypeAAAA} {
		if known := b.pins.addresses(name); len(known) > 0 {
			return known[0], nil
		}
		if last = b.lookup(ctx, &wire.Lookup{Name: string(name), Type: kind}); last.Result == wire.ResultDenied {
			return netip.Addr{}, &last
		}
	}
	if known := b.pins.addresses(name); len(known) > 0 {
		return known[0], nil
	}
	return netip.Addr{}, &wire.Answer{Result: wire.ResultUnreachable, Rule: last.Rule}
}
