package broker

import (
	"context"
	"net/netip"
	"os"
	"slices"
	"time"

	"clove.run/clove/egress"
)

const (
	dialTimeout = 10 * time.Second // for all addresses of a name together
	// dialStagger is the head start of an address before the next one is tried in parallel
	// (RFC 8305 section 5). The agent cannot do this itself, because its own connection
	// succeeds as soon as the gate accepts.
	dialStagger = 300 * time.Millisecond
	maxTries    = 8 // addresses of one name
)

// dialled is a connected socket, with the question and the verdict that allowed it.
type dialled struct {
	file    *os.File
	asked   egress.Connection
	rules   *egress.Rules // that were asked
	own     *egress.Rules // as in connection
	verdict egress.Verdict
}

// refusedAddress is an address that the rules did not allow when it was to be dialled.
type refusedAddress struct{ verdict egress.Verdict }

func (r *refusedAddress) Error() string { return "refused: " + r.verdict.Detail }

// try is one address to dial. asked is about the same address, except for the host's
// loopback: there asked has 127.0.0.1 and to may be ::1.
type try struct {
	asked   egress.Connection
	to      netip.AddrPort
	rules   *egress.Rules // the rules that have allowed it already; nil: none
	own     *egress.Rules // as in connection
	verdict egress.Verdict
}

// tries returns the requested address, followed by the other addresses that the agent was
// given for the same name.
func (b *Broker) tries(asked egress.Connection, rules, own *egress.Rules, verdict egress.Verdict) []try {
	wanted := asked.Target
	list := []try{{asked, wanted, rules, own, verdict}}
	if wanted.Addr() == hostLoopback {
		return append(list, try{asked, netip.AddrPortFrom(netip.IPv6Loopback(), wanted.Port()), rules, own, verdict})
	}
	name := verdict.Name
	if name == "" && slices.Contains(asked.Pinned, asked.Shown) {
		name = asked.Shown
	}
	if name == "" && len(asked.Pinned) == 1 {
		name = asked.Pinned[0]
	}
	// The verdict of an address rule, or of `public`, has no name. Then the agent's choice
	// of address is kept, unless only one name can have led to it.
	for _, addr := range b.pins.addresses(name) {
		if addr == wanted.Addr() || len(list) == maxTries {
			continue
		}
		other := asked
		other.Target = netip.AddrPortFrom(addr, wanted.Port())
		other.Pinned = b.pins.names(addr)
		list = append(list, try{asked: other, to: other.Target, own: own})
	}
	return list
}

// result is the outcome of tries[at].
type result struct {
	at     int
	socket dialled
	err    error
}

// dialAny returns the first connection that succeeds. If none does, the error is that of
// the requested address.
func (b *Broker) dialAny(ctx context.Context, list []try) (dialled, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if len(list) == 1 { // the usual case needs no goroutine
		return b.dialOne(ctx, list[0])
	}
	results := make(chan result, len(list))
	failures := make([]error, len(list))
	started, ended := 0, 0
	start := func() {
		if started < len(list) {
			at := started
			started++
			go func() {
				socket, err := b.dialOne(ctx, list[at])
				results <- result{at, socket, err}
			}()
		}
	}
	pace := time.NewTicker(dialStagger)
	defer pace.Stop()
	for start(); ended < started; {
		select {
		case <-pace.C:
			start()
		case r := <-results:
			ended++
			if r.err == nil {
				cancel()
				// Their context has ended, so this does not wait for a slow peer.
				closeLate(results, started-ended)
				return r.socket, nil
			}
			// A failure starts the next try at once instead of at the next tick.
			failures[r.at] = r.err
			if ctx.Err() == nil {
				start()
			}
		}
	}
	return dialled{}, failures[0]
}

// closeLate waits for the tries that lost, and closes their connections.
func closeLate(results <-chan result, n int) {
	for range n {
		if r := <-results; r.err == nil {
			r.socket.file.Close()
		}
	}
}

// dialOne checks the rules for exactly the address that it dials, unless the present rules
// have allowed it just now. Since it was pinned, it may have become the host's own address,
// or the rules may have changed.
func (b *Broker) dialOne(ctx context.Context, t try) (dialled, error) {
	rules, verdict := b.connections.currentRules(), t.verdict
	if rules != t.rules {
		verdict = judgeWith(rules, t.own, t.asked)
	}
	if !verdict.Allowed {
		return dialled{}, &refusedAddress{verdict}
	}
	network := "tcp6"
	if t.to.Addr().Is4() {
		network = "tcp4"
	}
	file, err := b.dial(ctx, network, t.to)
	if err != nil {
		return dialled{}, err
	}
	return dialled{file, t.asked, rules, t.own, verdict}, nil
}
