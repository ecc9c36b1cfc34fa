package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"

	"github.com/creachadair/jrpc2"

	"clove.run/clove/api"
	"clove.run/clove/internal/rpc"
)

// Bounds of the server as a whole.
const (
	maxConnections     = 1024
	maxConnectionsEach = 128 // of one user other than root
)

// server accepts connections and holds the conversations on them.
type server struct {
	daemon *Daemon
	log    *slog.Logger
	group  int // the id of the group whose members may connect; -1: none

	mu       sync.Mutex // guards the following
	open     map[*rpc.Conn]uint32
	each     map[uint32]int // connections of a user
	draining bool
	all      sync.WaitGroup
}

func newServer(d *Daemon, group int) *server {
	return &server{daemon: d, log: d.log, group: group, open: map[*rpc.Conn]uint32{}, each: map[uint32]int{}}
}

// accept serves connections until the listener is closed.
func (s *server) accept(listener *net.UnixListener) error {
	for {
		conn, err := listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		s.all.Go(func() { s.welcome(conn) })
	}
}

// welcome holds one connection from its beginning to its end.
func (s *server) welcome(conn *net.UnixConn) {
	c := rpc.New(conn)
	defer c.Close()
	peer, err := peerOf(conn)
	defer peer.close()
	if err != nil {
		s.log.Warn("a connection is refused", "error", err)
		return
	}
	if fault := s.enter(c, peer); fault != nil {
		s.log.Warn("a connection is refused", "peer", peer.String(), "reason", fault.Message)
		s.daemon.meter.Refused(fault.Data.Word)
		_ = c.Respond(json.RawMessage("null"), nil, fault)
		return
	}
	defer s.leave(c)
	s.converse(c, peer)
}

// enter admits a connection or says why not.
func (s *server) enter(c *rpc.Conn, peer caller) *api.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	uid := peer.owner.UID
	switch {
	case !peer.member(s.group):
		return api.Failure(api.CodeDenied, "become a member of cloved's group, or use sudo", "uid %d may not use cloved", uid)
	case s.draining:
		return api.Failure(api.CodeDraining, "connect again in a moment", "cloved is ending")
	case len(s.open) >= maxConnections, !peer.root() && s.each[uid] >= maxConnectionsEach:
		return api.Failure(api.CodeBusy, "close some and try again", "there are too many connections")
	}
	s.open[c] = uid
	s.daemon.connections.Add(1)
	s.each[uid]++
	return nil
}

func (s *server) leave(c *rpc.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	uid := s.open[c]
	delete(s.open, c)
	s.daemon.connections.Add(-1)
	if s.each[uid]--; s.each[uid] == 0 {
		delete(s.each, uid)
	}
}

// converse looks at the first line: a session keeps the connection to itself.
func (s *server) converse(c *rpc.Conn, peer caller) {
	alive, cancel := context.WithCancel(context.Background())
	defer cancel()
	mux := assigner{daemon: s.daemon, peer: peer}
	channel := newChannel(c, func(method string, params json.RawMessage) {
		mux.notification(alive, method, params)
	})
	first, err := channel.Recv()
	if err != nil {
		return
	}
	var m rpc.Message
	if json.Unmarshal(first, &m) == nil && isSession(m.Method) {
		s.session(c, peer, m)
		return
	}
	channel.first = first
	conversation := jrpc2.NewServer(mux, &jrpc2.ServerOptions{
		AllowPush: true, DisableBuiltin: true, Concurrency: maxPending,
		NewContext: func() context.Context { return alive },
	})
	conversation.Start(channel)
	if err := conversation.Wait(); err != nil && !errors.Is(err, io.EOF) {
		s.log.Debug("a connection ended", "peer", peer.String(), "error", err)
	}
}

// drain lets what is being answered come to its end, at most until ctx ends.
func (s *server) drain(ctx context.Context) {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	done := make(chan struct{})
	go func() { s.all.Wait(); close(done) }()
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	s.mu.Lock()
	for c := range s.open {
		c.Close()
	}
	s.mu.Unlock()
	<-done
}
