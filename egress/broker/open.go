package broker

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"clove.run/clove/egress"
	"clove.run/clove/egress/wire"
)

// hostLoopback as a target means a port of the host's loopback. The agent's connections to
// its own loopback never reach the gate.
var hostLoopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// open decides on a TCP connection and dials it. id is the number of the request.
func (b *Broker) open(ctx context.Context, id uint64, o *wire.Open) wire.Answer {
	kind := KindTCP
	if o.Target.Addr() == hostLoopback {
		kind = KindHostPort
	}
	// The gate sets Shown also when it looked and found no name (ShownNothing).
	asked := egress.Connection{Proto: egress.TCP, Target: o.Target, Pinned: b.pins.names(o.Target.Addr()), Looked: o.Shown != ""}
	if o.Name != "" {
		shown, ok := canonical(o.Name)
		if !ok {
			return b.deny(kind, asked, egress.Verdict{Reason: egress.ReasonMismatch, Detail: fmt.Sprintf("the client showed %+.80q, which is no host name", o.Name)})
		}
		asked.Shown = shown
	}
	asked, own, final := b.people.behind(ctx, b, id, kind, asked)
	if final != nil {
		return *final
	}
	rules := b.connections.currentRules()
	connect := func(r *egress.Rules) egress.Verdict { return r.Connect(asked) }
	verdict := with(rules, own, connect)
	if b.people.may(verdict) {
		own = b.reconsider(ctx, id, decisionOn(kind, OutcomeDenied, asked, verdict), verdict)
		rules = b.connections.currentRules()
		verdict = with(rules, own, connect)
	}
	switch {
	case !verdict.Allowed:
		return b.deny(kind, asked, verdict)
	case swaps{b.config.Swap}.mayBe(asked):
		b.people.keep(asked.Target, own)
		return wire.Answer{Result: wire.ResultVerify, Rule: verdict.Rule}
	case settled(verdict, asked):
		return b.connect(ctx, kind, asked, rules, own, verdict)
	case asked.Looked: // the rules may have been replaced since the first request
		return b.deny(kind, asked, unseen)
	case verdict.Verify == egress.VerifyDeny:
		b.people.keep(asked.Target, own)
		return wire.Answer{Result: wire.ResultVerifyDeny, Rule: verdict.Rule}
	}
	b.people.keep(asked.Target, own)
	return wire.Answer{Result: wire.ResultVerify, Rule: verdict.Rule}
}

// unseen denies what is allowed only to a client that shows a name.
var unseen = egress.Verdict{Reason: egress.ReasonNoName, Detail: refusals[wire.ReasonNoName]}

// connect dials what the rules allowed and hands the socket out.
func (b *Broker) connect(ctx context.Context, kind Kind, asked egress.Connection, rules, own *egress.Rules, verdict egress.Verdict) wire.Answer {
	if reason := b.connections.reserve(); reason != "" {
		return b.deny(kind, asked, limited(reason))
	}
	b.shadow.connection(kind, asked, b.now())
	socket, err := b.dialAny(ctx, b.tries(asked, rules, own, verdict))
	if err != nil {
		b.connections.giveBack()
		if refused := (*refusedAddress)(nil); errors.As(err, &refused) {
			return b.deny(kind, asked, refused.verdict)
		}
		return b.unreachable(kind, asked, verdict, err)
	}
	swapped, err := swaps{b.config.Swap}.pass(kind, socket)
	if err != nil {
		b.connections.giveBack()
		socket.file.Close()
		return b.unreachable(kind, asked, verdict, err)
	}
	c := &connection{kind: kind, asked: socket.asked, rules: socket.rules, own: socket.own, verdict: socket.verdict, swapped: swapped}
	return b.hand(c, socket.file)
}

// hand adds c to the open connections and puts its sockets into the answer. It owns the
// files until they are in the answer.
func (b *Broker) hand(c *connection, socket *os.File, more ...*os.File) wire.Answer {
	files := append([]*os.File{socket}, more...)
	fd, err := duplicate(socket) // before the gate gets the socket, so that every socket of the gate can be cut
	if err != nil {
		b.connections.giveBack()
		closeFiles(files)
		return b.unreachable(c.kind, c.asked, c.verdict, err)
	}
	c.fd = fd
	if c.swapped != nil {
		socket.Close()
		files[0] = c.swapped
	}
	// add gives a number to what it accepts.
	if verdict, reason := b.connections.add(c); c.number == 0 {
		closeFiles(files)
		unix.Close(fd)
		if reason != "" {
			verdict = limited(reason)
		}
		return b.deny(c.kind, c.asked, verdict)
	}
	b.log(c.decision(OutcomeAllowed, c.verdict))
	return wire.Answer{Result: wire.ResultAllowed, Number: c.number, Rule: c.verdict.Rule, Files: files}
}

// deny logs the denial and makes the answer; the gate reports it to the client.
func (b *Broker) deny(kind Kind, asked egress.Connection, verdict egress.Verdict) wire.Answer {
	d := decisionOn(kind, OutcomeDenied, asked, verdict)
	b.log(d)
	return denied(d)
}

// denied is the answer, with what the gate may show to the client.
func denied(d Decision) wire.Answer {
	rule := d.Detail
	if rule == "" {
		rule = d.Rule
	}
	return wire.Answer{Result: wire.ResultDenied, Rule: rule, Hint: d.Hint}
}

// unreachable logs the error. The gate gets only the rule, not the error text.
func (b *Broker) unreachable(kind Kind, asked egress.Connection, verdict egress.Verdict, err error) wire.Answer {
	d := decisionOn(kind, OutcomeUnreachable, asked, verdict)
	d.Reason, d.Detail = ReasonUnreachable, err.Error()
	b.log(d)
	return wire.Answer{Result: wire.ResultUnreachable, Rule: verdict.Rule}
}

// limited is the verdict for a limit that was reached.
func limited(reason wire.Reason) egress.Verdict {
	return egress.Verdict{Reason: string(reason), Detail: refusals[reason], Hint: limitHints[reason]}
}

var limitHints = map[wire.Reason]string{
	wire.ReasonBytes: "raise --net-bytes",
}
