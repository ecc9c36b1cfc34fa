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
	// dialStagger is the time that an address has before the next one is tried
	// beside it (RFC 8305 section 5). The agent cannot do this itself: its own
	// connection stands as soon as the gate accepts.
	dialStagger = 300 * time.Millisecond
	maxTries    = 8 // addresses of one name
)

// dialled is a connected socket with the question that allowed it.
type dialled struct {
	file    *os.File
	asked   egress.Connection
	rules   *egress.Rules // that were asked
	verdict egress.Verdict
}

// refusedAddress is an address that the rules did not allow at the moment of
// dialling.
type refusedAddress struct{ verdict egress.Verdict }

func (r *refusedAddress) Error() string { return "refused: " + r.verdict.Detail }

// try is one address to dial. asked is about the same address, but for the
// host's loopback, which is asked for as 127.0.0.1 alone.
type try struct {
	asked   egress.Connection
	to      netip.AddrPort
	rules   *egress.Rules // that have allowed it already; nil for none
	verdict egress.Verdict
}

// tries are the wanted address, and then the others that were given to the
// agent for the same name.
func (b *Broker) tries(asked egress.Connection, rules *egress.Rules, verdict egress.Verdict) []try {
	wanted := asked.Target
	list := []try{{asked, wanted, rules, verdict}}
	if wanted.Addr() == hostLoopback {
		return append(list, try{asked, netip.AddrPortFrom(netip.IPv6Loopback(), wanted.Port()), rules, verdict})
	}
	name := verdict.Name
	if name == "" && slices.Contains(asked.Pinned, asked.Shown) {
		name = asked.Shown
	}
	if name == "" && len(asked.Pinned) == 1 {
		name = asked.Pinned[0]
	}
	// A rule by address, or `public`, names no name; the agent's own choice among
	// the addresses is kept unless it is clear which name led to them.
	for _, addr := range b.pins.addresses(name) {
		if addr == wanted.Addr() || len(list) == maxTries {
			continue
		}
		other := asked
		other.Target = netip.AddrPortFrom(addr, wanted.Port())
		other.Pinned = b.pins.names(addr)
		list = append(list, try{asked: other, to: other.Target})
	}
	return list
}

type result struct {
	at     int
	socket dialled
	err    error
}

// dialAny returns the first connection of all tries. Where none succeeds, the
// error is that of the wanted address.
func (b *Broker) dialAny(ctx context.Context, list []try) (dialled, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if len(list) == 1 { // most: no race, no goroutine
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
				closeLate(results, started-ended)
				return r.socket, nil
			}
			failures[r.at] = r.err
			if ctx.Err() == nil {
				start()
			}
		}
	}
	return dialled{}, failures[0]
}

// closeLate waits for the tries that lost.
func closeLate(results <-chan result, n int) {
	for range n {
		if r := <-results; r.err == nil {
			r.socket.file.Close()
		}
	}
}

// dialOne asks the rules about the very address that it dials, unless they just
// were: since it was pinned it may have become this host's own, or the rules
// others.
func (b *Broker) dialOne(ctx context.Context, t try) (dialled, error) {
	rules, verdict := b.connections.currentRules(), t.verdict
	if rules != t.rules {
		verdict = judge(rules, t.asked)
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
	return dialled{file, t.asked, rules, verdict}, nil
}
