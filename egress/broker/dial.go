package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

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
	conn, err := b.dial(ctx, network, t.to)
	if err != nil {
		return dialled{}, err
	}
	defer conn.Close() // the file is a descriptor of its own
	file, err := fileOf(conn)
	if err != nil {
		return dialled{}, err
	}
	return dialled{file, t.asked, rules, verdict}, nil
}

// dial connects to an address, never to a name.
func dial(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error) {
	dialer := net.Dialer{ControlContext: options} // keep-alive and TCP_NODELAY are net's defaults
	dialer.SetMultipathTCP(false)                 // one peer address, one TCP_INFO
	conn, err := dialer.DialContext(ctx, network, to.String())
	if err != nil {
		return nil, err
	}
	if err := connectedTo(conn, to); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// options takes back SO_BROADCAST, which net sets on every datagram socket: a
// subnet's broadcast address looks like any other.
func options(_ context.Context, network, _ string, raw syscall.RawConn) error {
	if network != "udp4" && network != "udp6" {
		return nil
	}
	var err error
	controlErr := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BROADCAST, 0) })
	return errors.Join(controlErr, err)
}

// connectedTo asks the kernel where conn really leads.
func connectedTo(conn net.Conn, want netip.AddrPort) error {
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return fmt.Errorf("cannot check connection: %w", err)
	}
	var peer netip.AddrPort
	var peerErr error
	controlErr := raw.Control(func(fd uintptr) { peer, peerErr = socketAddress(unix.Getpeername(int(fd))) })
	if err := errors.Join(controlErr, peerErr); err != nil {
		return fmt.Errorf("cannot check connection: %w", err)
	}
	if peer != want {
		return fmt.Errorf("cannot use connection: it leads to %s instead of %s", peer, want)
	}
	return nil
}

func fileOf(conn net.Conn) (*os.File, error) {
	switch conn := conn.(type) {
	case *net.TCPConn:
		return conn.File()
	case *net.UDPConn:
		return conn.File()
	}
	return nil, fmt.Errorf("cannot hand out a %T", conn)
}
