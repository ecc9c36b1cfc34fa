package callout

import (
	"context"
	"net"
	"net/netip"
	"os"
	"sync"

	"clove.run/clove/agent"
	"clove.run/clove/internal/nsthread"
)

// dialer makes sockets that belong to a user, so that a firewall rule by user (iptables -m
// owner, nft meta skuid) applies to them: those of name servers too.
type dialer struct {
	mu     sync.Mutex       // makes calls come one at a time
	thread *nsthread.Thread // has the user's ids; nil: they are the process's own
}

func newDialer(owner agent.Owner) (*dialer, error) {
	if owner.UID == uint32(os.Geteuid()) {
		return &dialer{}, nil
	}
	thread, err := nsthread.StartAs(nsthread.Identity{UID: owner.UID, GID: owner.GID})
	return &dialer{thread: thread}, err
}

// close waits for a socket that is being made.
func (d *dialer) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.thread != nil {
		d.thread.Close()
		d.thread = nil
	}
}

// toName connects to HOST:PORT, by the first address that answers.
func (d *dialer) toName(ctx context.Context, network, to string) (conn net.Conn, err error) {
	host, port, err := net.SplitHostPort(to)
	if err != nil {
		return nil, err
	}
	resolver := net.Resolver{PreferGo: true, Dial: d.toAddress}
	addresses, err := resolver.LookupNetIP(ctx, "ip", host)
	for _, address := range addresses {
		if conn, err = d.toAddress(ctx, network, net.JoinHostPort(unmapped(address), port)); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

func unmapped(a netip.Addr) string { return a.Unmap().String() }

// toAddress connects to an address. The net package makes the socket of a literal address in
// the calling goroutine, and so on the thread: FallbackDelay below 0 keeps it from others.
func (d *dialer) toAddress(ctx context.Context, network, to string) (conn net.Conn, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	connect := func() (err error) {
		conn, err = (&net.Dialer{FallbackDelay: -1}).DialContext(ctx, network, to)
		return err
	}
	if d.thread == nil {
		err = connect()
	} else {
		err = d.thread.Do(connect)
	}
	return conn, err
}
