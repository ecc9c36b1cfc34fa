package host

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/egress/broker"
	"clove.run/clove/internal/nsthread"
)

// outside makes the sockets that lead into the host's network. Those of a user's
// run belong to that user, so that a firewall rule by user (iptables -m owner, nft
// meta skuid) applies to the agent as it does to the user.
type outside struct {
	mu     sync.Mutex       // guards the following, and makes calls come one at a time
	thread *nsthread.Thread // has the user's ids; nil: root's own, or closed
	closed bool
	root   bool
}

func newOutside(owner agent.Owner) (*outside, error) {
	// Root's sockets need no thread, and so no lock.
	if owner.UID == 0 {
		return &outside{root: true}, nil
	}
	// Without supplementary groups, as the workspace is opened.
	thread, err := nsthread.StartAs(nsthread.Identity{UID: owner.UID, GID: owner.GID})
	return &outside{thread: thread}, err
}

var errOutsideClosed = errors.New("the run's network has ended")

// do runs make on the thread that has the owner's ids. It can be called after close,
// because a name lookup may outlive its run.
func (o *outside) do(make func() error) error {
	if o.root {
		return make()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return errOutsideClosed
	}
	return o.thread.Do(make)
}

// close waits for a socket that is being made. Later calls of do fail.
func (o *outside) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.thread != nil && !o.closed {
		o.thread.Close()
	}
	o.closed = true
	return nil
}

// socket is socket(2).
func (o *outside) socket(family, kind int) (fd int, err error) {
	err = o.do(func() (err error) { fd, err = unix.Socket(family, kind, 0); return err })
	return fd, err
}

// dialer connects to name servers with the owner's sockets; nil: as root.
func (o *outside) dialer() func(ctx context.Context, network string, server netip.AddrPort) (net.Conn, error) {
	if o.root {
		return nil
	}
	return func(ctx context.Context, network string, server netip.AddrPort) (net.Conn, error) {
		return dialBy(ctx, o.socket, network, server)
	}
}

func (o *outside) listen(p agent.PublishedPort) (file *os.File, err error) {
	err = o.do(func() (err error) { file, err = listenOnHost(p); return err })
	return file, err
}

func listenOnHost(p agent.PublishedPort) (*os.File, error) {
	listener, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(p.Host))
	if err != nil {
		return nil, &agent.Error{Kind: agent.KindConflict, Step: "--publish", Message: "cannot listen on " + p.Host.String(),
			Hint: "choose another port of the host's, or 0 for any free one", Err: err}
	}
	defer listener.Close()
	// A duplicate, which keeps listening when the listener is closed.
	return listener.File()
}

// dialBy connects to a name server by a socket of a certain sort.
func dialBy(ctx context.Context, socket func(family, kind int) (int, error), network string, server netip.AddrPort) (net.Conn, error) {
	if server.Addr().Is4() {
		network += "4"
	} else {
		network += "6"
	}
	file, err := broker.Dial(ctx, socket, network, server)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return net.FileConn(file)
}
