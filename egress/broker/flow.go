package broker

import (
	"context"
	"net/netip"
	"os"

	"clove.run/clove/egress"
	"clove.run/clove/egress/wire"
)

// flow decides on datagrams between one socket of the agent and one target.
func (b *Broker) flow(ctx context.Context, id uint64, f *wire.Flow) wire.Answer {
	asked := egress.Connection{Proto: egress.UDP, Target: f.Target, Pinned: b.pins.names(f.Target.Addr())}
	asked, own, final := b.people.behind(ctx, b, id, KindUDP, asked)
	if final != nil {
		return *final
	}
	connect := func(r *egress.Rules) egress.Verdict { return r.Connect(asked) }
	verdict := with(b.connections.currentRules(), own, connect)
	if b.people.may(verdict) {
		own = b.reconsider(ctx, id, decisionOn(KindUDP, OutcomeDenied, asked, verdict), verdict)
		verdict = with(b.connections.currentRules(), own, connect)
	}
	if !verdict.Allowed {
		return b.deny(KindUDP, asked, verdict)
	}
	if !settled(verdict, asked) { // the gate reads no name from datagrams
		return b.deny(KindUDP, asked, unseen)
	}
	if reason := b.connections.reserve(); reason != "" {
		return b.deny(KindUDP, asked, limited(reason))
	}
	b.shadow.connection(KindUDP, asked, b.now())
	outside, inside, err := b.flowSockets(ctx, f, asked.Target)
	if err != nil {
		b.connections.giveBack()
		return b.unreachable(KindUDP, asked, verdict, err)
	}
	return b.hand(&connection{kind: KindUDP, asked: asked, own: own, verdict: verdict}, outside, inside)
}

// flowSockets makes the outside socket first: if it fails, nothing in the agent's namespace
// has changed.
func (b *Broker) flowSockets(ctx context.Context, f *wire.Flow, to netip.AddrPort) (outside, inside *os.File, err error) {
	network := "udp6"
	if to.Addr().Is4() {
		network = "udp4"
	}
	if outside, err = b.dial(ctx, network, to); err != nil {
		return nil, nil, err
	}
	if inside, err = b.config.Namespace.Flow(f.Agent, f.Target); err != nil {
		outside.Close()
		return nil, nil, err
	}
	return outside, inside, nil
}

// enter connects a client of a published port to the agent. No rule applies: the user
// allowed it by publishing the port.
func (b *Broker) enter(ctx context.Context, e *wire.Enter) wire.Answer {
	// For the log: the client's address with the agent's port. No rule is asked.
	asked := egress.Connection{Proto: egress.TCP, Target: netip.AddrPortFrom(e.Client.Addr(), e.Port)}
	verdict := egress.Verdict{Allowed: true, Reason: egress.ReasonRule, Source: "-p"}
	if reason := b.connections.reserve(); reason != "" {
		return b.deny(KindPublish, asked, limited(reason))
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	inside, err := b.config.Namespace.DialPort(ctx, e.Port)
	if err != nil {
		b.connections.giveBack()
		return b.unreachable(KindPublish, asked, verdict, err)
	}
	return b.hand(&connection{kind: KindPublish, asked: asked, verdict: verdict, inward: true}, inside)
}
