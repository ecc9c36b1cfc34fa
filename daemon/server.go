package daemon

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/rpc"
)

// Bounds of the server as a whole.
const (
	maxConnections     = 1024 // of all callers together; root counts and is never refused
	maxConnectionsEach = 128  // of one user other than root
)

// server accepts connections and holds the conversations on them. It lives as long as the
// listener; after drain it has no connection left.
type server struct {
	dispatch    dispatcher
	supervisors supervisors
	layers      layers
	shared      *shared
	ledger      func(caller) *ledger
	connections *atomic.Int64
	log         *slog.Logger
	group       int // the id of the group whose members may connect; -1: none

	ending context.Context // ends when the server is to end
	end    context.CancelFunc

	mu   sync.Mutex // guards the following
	open map[*conversation]uint32
	each map[uint32]int // connections of a user
	all  sync.WaitGroup
}

// newServer makes the server of a Daemon whose kernel.db is open: the handler groups need it.
func newServer(d *Daemon, group int) *server {
	s := &server{dispatch: d.dispatcher(), supervisors: d.supervisors(), layers: d.layers(), shared: d.shared, ledger: d.ledger, connections: &d.connections, log: d.log, group: group, open: map[*conversation]uint32{}, each: map[uint32]int{}}
	s.ending, s.end = context.WithCancel(context.Background())
	return s
}

// acceptAgain is the pause after an accept(2) that failed, as it does while the process
// has too many files open: without one the loop would take a CPU.
const acceptAgain = 100 * time.Millisecond

// accept serves connections until the listener is closed.
func (s *server) accept(listener *net.UnixListener) error {
	for {
		conn, err := listener.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			// Too many open files, or the caller has gone: cloved serves on.
			s.log.Error("cannot accept a connection", "error", err)
			<-time.After(acceptAgain)
			continue
		}
		s.all.Go(func() { s.welcome(conn) })
	}
}

// welcome serves one connection until it ends.
func (s *server) welcome(conn *net.UnixConn) {
	c := rpc.New(conn)
	defer c.Close()
	peer, err := peerOf(conn)
	if err != nil {
		s.log.Warn("a connection is refused", "error", err)
		return
	}
	s.talk(c, peer, s.ledger(peer))
}

// talk serves a known caller, if it may connect. When it returns, no goroutine and no
// counted byte of the connection is left.
func (s *server) talk(conn *rpc.Conn, peer caller, owes *ledger) {
	defer owes.close()
	alive, cancel := context.WithCancel(context.Background())
	c := s.newConversation(alive, conn, peer, owes)
	if fault := s.enter(c, peer); fault != nil {
		cancel()
		s.log.Warn("a connection is refused", "peer", peer.String(), "reason", fault.Message)
		s.dispatch.meter.Refused(fault.Data.Word)
		_ = c.refuse(nil, fault)
		return
	}
	// These run in reverse order: the connection is closed and its requests are cancelled,
	// which ends them; they are awaited; and only then are its place and its bytes free.
	defer s.leave(c)
	defer c.all.Wait()
	defer cancel()
	defer conn.Close()
	s.converse(c)
}

// enter admits a connection or says why not.
func (s *server) enter(c *conversation, peer caller) *api.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	uid := peer.owner.UID
	switch {
	// The socket's mode is not enough: a connected socket can be passed on, and systemd's
	// unit may have another group.
	case !peer.member(s.group):
		return api.Failure(api.CodeDenied, "become a member of cloved's group, or use sudo", "uid %d may not use cloved", uid)
	case s.ending.Err() != nil:
		return api.Failure(api.CodeDraining, "connect again in a moment", "cloved is ending")
	case !peer.root() && (len(s.open) >= maxConnections || s.each[uid] >= maxConnectionsEach):
		// Users must not be able to keep root out.
		return api.Failure(api.CodeBusy, "close some and try again", "there are too many connections")
	}
	s.open[c] = uid
	s.connections.Add(1)
	s.each[uid]++
	return nil
}

// leave takes a connection out of the counts.
func (s *server) leave(c *conversation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	uid := s.open[c]
	delete(s.open, c)
	s.connections.Add(-1)
	if s.each[uid]--; s.each[uid] == 0 {
		delete(s.each, uid)
	}
}

// converse answers each line, until there are no more. A session keeps the connection
// to itself, so only the first request can be one.
func (s *server) converse(c *conversation) {
	for first := true; ; first = false {
		l, err := c.next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				s.log.Debug("a connection ended", "peer", c.peer.String(), "error", err)
			}
			return
		}
		if r := l.calls[0]; first && !l.batch && r.Fault == nil && isSession(r.Method) {
			switch r.Method {
			case methods.KernelServe.Name:
				s.serveAgent(c.conn, c.peer, r.Message())
			case methods.SecretOpen.Name:
				s.openSecrets(c.conn, c.peer, r.Message())
			default:
				s.session(c.conn, c.peer, r.Message())
			}
			return
		}
		c.all.Go(func() { c.answer(l) })
	}
}

// drain lets what is being answered come to its end, at most until ctx ends. Streams and
// run.wait have no end of their own and are ended: their callers ask the next cloved.
// Connections without a request that is answered are closed at once.
func (s *server) drain(ctx context.Context) {
	s.end()
	each := func(do func(*conversation)) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for c := range s.open {
			do(c)
		}
	}
	each((*conversation).end)
	done := make(chan struct{})
	go func() { s.all.Wait(); close(done) }()
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	each(func(c *conversation) { c.conn.Close() })
	<-done
}
