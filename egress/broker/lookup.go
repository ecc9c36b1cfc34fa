package broker

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"clove.run/clove/egress"
	"clove.run/clove/egress/dnsmsg"
	"clove.run/clove/egress/wire"
)

const (
	// maxLookups bounds the queries under way. Queries to a slow server must not use up all
	// of maxAtOnce, which connections need too.
	maxLookups = 128
	// localTTL is short, because pins change.
	localTTL = 10 * time.Second
)

// lookup answers one DNS question. The order protects the host: invalid and local names
// never leave it, the rules are asked before the resolver, because a query is itself a
// message to the outside, and the addresses are filtered before they are pinned. own are the rules of a connection
// that people have allowed, for which the name is looked up; nil: it is the agent's question.
func (b *Broker) lookup(ctx context.Context, l *wire.Lookup, own *egress.Rules) wire.Answer {
	name, ok := canonical(l.Name)
	if !ok {
		return b.denyName(Decision{Reason: egress.ReasonInvalid, Detail: fmt.Sprintf("%+.80q is no host name", l.Name)}, traffic{})
	}
	if reply := b.local(name, l.Type); reply != nil {
		return b.answerWith(name, reply, egress.Verdict{Allowed: true, Reason: ReasonLocal}, traffic{})
	}
	rules := b.connections.currentRules()
	verdict := with(rules, own, func(r *egress.Rules) egress.Verdict { return r.Resolve(name) })
	if b.people.may(verdict) {
		if reply := b.people.reply(name, l.Type); reply != nil {
			return b.answerWith(name, reply, egress.Verdict{Allowed: true, Reason: ReasonStandin}, traffic{})
		}
	}
	if !verdict.Allowed {
		return b.denyName(nameDecision(OutcomeDenied, name, verdict), traffic{})
	}
	question := traffic{sent: dnsmsg.QuestionBytes(string(name))}
	if bounded := b.bound(name, verdict, question); !bounded.Allowed {
		return b.denyName(nameDecision(OutcomeDenied, name, bounded), traffic{})
	}
	reply, err := b.resolve(ctx, name, l.Type)
	if err != nil {
		b.shadow.name(name, b.now())
		d := nameDecision(OutcomeUnreachable, name, verdict)
		d.Reason, d.Detail, d.TxBytes = ReasonUnresolved, err.Error(), question.sent
		b.log(d)
		return wire.Answer{Result: wire.ResultUnreachable, Rule: d.Detail, Bytes: question.sent}
	}
	// Before the answer is packed: with these keys a client would encrypt its hello, which
	// the gate then refuses.
	reply.StripECH()
	if denied := b.filter(rules, own, name, reply); denied != nil {
		return b.denyName(*denied, question)
	}
	b.shadow.name(name, b.now())
	return b.answerWith(name, reply, verdict, question)
}

// resolve fails at once if maxLookups queries are under way. The client repeats its query,
// and an agent that floods a slow server delays only its own queries. Waiting for a place
// would hold one of maxAtOnce.
func (b *Broker) resolve(ctx context.Context, name egress.Name, qtype uint16) (*dnsmsg.Reply, error) {
	select {
	case b.lookups <- struct{}{}:
		defer func() { <-b.lookups }()
	default:
		return nil, fmt.Errorf("cannot resolve: %d questions are under way already", maxLookups)
	}
	return b.config.Resolver.Lookup(ctx, string(name), qtype)
}

// filter removes from reply the addresses that may not be reached, and those to which this
// host has no route, so that programs try the other family. The remaining ones are pinned.
// It returns the denial if a rule removed the last address.
func (b *Broker) filter(rules, own *egress.Rules, name egress.Name, reply *dnsmsg.Reply) *Decision {
	var denied *Decision
	refusedAll := true
	shadow := b.shadow.answers(name, b.now())
	reply.Filter(func(addr netip.Addr) bool {
		verdict := with(rules, own, func(r *egress.Rules) egress.Verdict { return r.Answer(name, addr) })
		if !verdict.Allowed {
			d := nameDecision(OutcomeDenied, name, verdict)
			d.Address = netip.AddrPortFrom(addr, 0)
			denied = &d
			return false
		}
		refusedAll = false
		shadow.add(addr)
		return b.routed(addr)
	})
	switch {
	case denied == nil:
	case !refusedAll:
		b.log(*denied) // the rest of the answer is sent
	case reply.Type() == dnsmsg.TypeA || reply.Type() == dnsmsg.TypeAAAA:
		return denied
	default:
		b.log(*denied) // only address hints were removed: the record is useful without them
	}
	shadow.count()
	b.pin(name, reply, own)
	return nil
}

// pin remembers the answer, unless rules that deny the name were put in force meanwhile:
// their Replace has dropped the pins of the name already.
func (b *Broker) pin(name egress.Name, reply *dnsmsg.Reply, own *egress.Rules) {
	for _, address := range reply.Addresses() {
		b.pins.add(name, address.Addr.Unmap(), address.TTL)
	}
	if !with(b.connections.currentRules(), own, func(r *egress.Rules) egress.Verdict { return r.Resolve(name) }).Allowed {
		b.pins.drop(func(other egress.Name) bool { return other != name })
	}
}

// answerWith logs the decision and packs the reply. The answer to a question that counted
// counts as well; where too few bytes are left for it, it is denied.
func (b *Broker) answerWith(name egress.Name, reply *dnsmsg.Reply, verdict egress.Verdict, counted traffic) wire.Answer {
	message, err := reply.Pack()
	if err != nil {
		d := nameDecision(OutcomeUnreachable, name, verdict)
		d.Reason, d.Detail, d.TxBytes = ReasonUnresolved, err.Error(), counted.sent
		b.log(d)
		return wire.Answer{Result: wire.ResultUnreachable, Bytes: counted.sent}
	}
	if counted.sent > 0 {
		counted.received = int64(len(message))
		if !b.connections.charge(traffic{received: counted.received}) {
			return b.denyName(nameDecision(OutcomeDenied, name, limited(wire.ReasonBytes)), traffic{sent: counted.sent})
		}
	}
	d := nameDecision(OutcomeAllowed, name, verdict)
	d.TxBytes, d.RxBytes = counted.sent, counted.received
	b.log(d)
	return wire.Answer{Result: wire.ResultAllowed, Rule: verdict.Rule, Message: message, Bytes: counted.sent + counted.received}
}

// denyName makes the gate answer REFUSED. A question that has left already counted.
func (b *Broker) denyName(d Decision, counted traffic) wire.Answer {
	d.Kind, d.Outcome, d.TxBytes = KindDNS, OutcomeDenied, counted.sent
	b.log(d)
	answer := denied(d)
	answer.Bytes = counted.sent
	return answer
}

func nameDecision(outcome Outcome, name egress.Name, verdict egress.Verdict) Decision {
	return Decision{Kind: KindDNS, Outcome: outcome, Name: string(name), Rule: verdict.Rule, Source: verdict.Source,
		Reason: verdict.Reason, Detail: verdict.Detail, Hint: verdict.Hint}
}

// local answers names that must not be sent to name servers (RFC 6761 section 6, RFC 6762
// section 3, RFC 7686 section 2); nil for all others.
func (b *Broker) local(name egress.Name, qtype uint16) *dnsmsg.Reply {
	reply := func(rcode int) *dnsmsg.Reply { return dnsmsg.NewReply(string(name), qtype, rcode) }
	if name.IsLocalhost() {
		return reply(dnsmsg.RCodeSuccess).WithAddresses(localTTL, netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback())
	}
	switch top := string(name[strings.LastIndexByte(string(name), '.')+1:]); top {
	case "invalid", "local", "onion":
		return reply(dnsmsg.RCodeNameError)
	}
	addr, reverse := name.Reverse()
	if !reverse {
		return nil
	}
	if text := b.nameOf(addr); text != "" {
		return reply(dnsmsg.RCodeSuccess).WithPTR(localTTL, text)
	}
	return reply(dnsmsg.RCodeNameError)
}

// nameOf answers a reverse look-up from the pins only: the agent learns nothing that it
// does not know.
func (b *Broker) nameOf(addr netip.Addr) string {
	if !addr.IsValid() {
		return ""
	}
	if addr.IsLoopback() {
		return "localhost"
	}
	if names := b.pins.names(addr.Unmap()); len(names) > 0 {
		return string(names[0])
	}
	return ""
}
