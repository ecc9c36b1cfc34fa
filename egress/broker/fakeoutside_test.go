package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"clove.run/clove/egress/dnsmsg"
)

// fakeResolver answers from a table and counts its queries.
type fakeResolver struct {
	mu      sync.Mutex // guards the fields below
	answers map[string][]string
	replies map[string][]byte // whole messages, which take precedence over answers
	asked   []string
	err     error
	block   chan struct{} // if set, answers wait for it
	entered chan struct{} // and this is notified of each that waits
}

func (r *fakeResolver) set(name string, addrs ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers[name] = addrs
}

// change changes the fields under the lock.
func (r *fakeResolver) change(how func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	how()
}

func (r *fakeResolver) questions() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.asked)
}

func (r *fakeResolver) Lookup(ctx context.Context, name string, qtype uint16) (*dnsmsg.Reply, error) {
	r.mu.Lock()
	r.asked = append(r.asked, name)
	addrs, known := r.answers[name]
	block, entered, err, packet := r.block, r.entered, r.err, r.replies[name]
	r.mu.Unlock()
	if block != nil {
		entered <- struct{}{}
		select {
		case <-block:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if err != nil {
		return nil, err
	}
	if packet != nil {
		return dnsmsg.ParseReply(packet)
	}
	if !known {
		return dnsmsg.NewReply(name, qtype, dnsmsg.RCodeNameError), nil
	}
	reply := dnsmsg.NewReply(name, qtype, dnsmsg.RCodeSuccess)
	for _, addr := range addrs {
		reply.WithAddresses(0, netip.MustParseAddr(addr))
	}
	return reply, nil
}

// fakeNetwork is the outside and the agent's namespace.
type fakeNetwork struct {
	mu     sync.Mutex // guards the fields below
	leads  map[netip.AddrPort]string
	dialed []netip.AddrPort
	inside string        // the address that DialPort connects to
	gate   chan struct{} // if set, each dial of a held target takes one value from it
	inDial int
	peak   int           // of inDial
	begun  chan struct{} // notified of each held dial
	only4  bool          // there is no route for IPv6
	flows  []netip.AddrPort

	clients      map[string]bool // the agent's sockets, as HasClient is asked
	clientsError error
}

func (n *fakeNetwork) lead(target netip.AddrPort, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leads[target] = to
}

// set changes the fields under the lock.
func (n *fakeNetwork) set(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
}

func (n *fakeNetwork) routes(addr netip.Addr) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return addr.Is4() || !n.only4
}

func (n *fakeNetwork) dials() []netip.AddrPort {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.dialed)
}

// Destinations that are no address.
const (
	blackhole = "blackhole" // nothing answers
	held      = "held"      // refused when the test says so
)

func (n *fakeNetwork) hold() {
	n.mu.Lock()
	n.inDial++
	n.peak = max(n.peak, n.inDial)
	n.mu.Unlock()
	n.begun <- struct{}{}
	<-n.gate
	n.mu.Lock()
	n.inDial--
	n.mu.Unlock()
}

// dial never leaves this machine: loopback is dialled as in production, and a target that
// leads nowhere is refused.
func (n *fakeNetwork) dial(ctx context.Context, network string, to netip.AddrPort) (*os.File, error) {
	n.mu.Lock()
	n.dialed = append(n.dialed, to)
	lead := n.leads[to]
	n.mu.Unlock()
	switch {
	case lead == blackhole:
		<-ctx.Done()
		return nil, ctx.Err()
	case lead == held:
		n.hold()
		return nil, unix.ECONNREFUSED
	case lead != "":
		return ownNetwork.dial(ctx, network[:3]+"4", netip.MustParseAddrPort(lead))
	case to.Addr().IsLoopback():
		return ownNetwork.dial(ctx, network, to)
	}
	return nil, unix.ECONNREFUSED
}

func (n *fakeNetwork) DialPort(ctx context.Context, _ uint16) (*os.File, error) {
	n.mu.Lock()
	inside := n.inside
	n.mu.Unlock()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", inside)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return fileOf(conn)
}

func (n *fakeNetwork) Flow(agent, target netip.AddrPort) (*os.File, error) {
	n.mu.Lock()
	n.flows = append(n.flows, agent, target)
	n.mu.Unlock()
	conn, err := net.Dial("udp4", "127.0.0.1:9")
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return fileOf(conn)
}

func (n *fakeNetwork) HasClient(proto int, client, target netip.AddrPort) (bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.clients[fmt.Sprint(proto, client, target)], n.clientsError
}

// fileOf returns only a descriptor, as the broker has of all sockets.
func fileOf(conn net.Conn) (*os.File, error) {
	if conn, ok := conn.(interface{ File() (*os.File, error) }); ok {
		return conn.File()
	}
	return nil, errors.ErrUnsupported
}
