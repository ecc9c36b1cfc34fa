package gate

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"time"

	"clove.run/clove/egress/wire"
)

// acceptBackoff is the pause after a failed accept(2). It fails for want of descriptors or
// memory, and would fail again at once.
const acceptBackoff = 50 * time.Millisecond

// admission counts connections that are served at the same time.
type admission interface {
	admit() wire.Reason
	release()
}

// accept serves each connection in a goroutine of its own, until the listener is closed.
func (s *server) accept(listener *net.TCPListener, limits admission, handle func(*net.TCPConn)) {
	for {
		conn, err := listener.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.shed(listener)
			if !s.pause(acceptBackoff) {
				return
			}
			continue
		}
		// Over the limit the client gets a reset at once. A connection left in the backlog
		// would look like a slow network.
		if reason := limits.admit(); reason != "" {
			s.refusals.tcp(targetOf(conn), "", reason)
			reset(conn)
			continue
		}
		go func() {
			defer limits.release()
			handle(conn)
		}()
	}
}

// shed refuses one connection when there is no free descriptor: it closes the spare one,
// accepts and resets. Otherwise the client would wait for ever. The limits normally prevent
// this case.
func (s *server) shed(listener *net.TCPListener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spare != nil {
		s.spare.Close()
	}
	// The client may have gone meanwhile; then accept must not block.
	if err := listener.SetDeadline(time.Now().Add(acceptBackoff)); err == nil {
		if conn, err := listener.AcceptTCP(); err == nil {
			s.refusals.tcp(targetOf(conn), "", wire.ReasonConnections)
			reset(conn)
		}
		_ = listener.SetDeadline(time.Time{}) // fails only if it is closed, and then accept ends
	}
	s.spare, _ = listener.File() // on an error there is no spare one; clients then wait for a free descriptor
}

// pause sleeps, and reports whether the gate still serves.
func (s *server) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.done:
		return false
	}
}

// targetOf is the agent's destination: the local address of a connection that a transparent
// socket accepted.
func targetOf(conn *net.TCPConn) netip.AddrPort { return plain(conn.LocalAddr()) }

// plain is the address in its one form: unmapped and without a zone.
func plain(address net.Addr) netip.AddrPort {
	var found netip.AddrPort
	switch a := address.(type) {
	case *net.TCPAddr:
		found = a.AddrPort()
	case *net.UDPAddr:
		found = a.AddrPort()
	}
	return unmap(found)
}

func unmap(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// agentConnection serves a connection of the agent to the outside.
func (s *server) agentConnection(conn *net.TCPConn) {
	target := targetOf(conn)
	if target.Addr().IsLoopback() {
		reset(conn) // it connected to the gate's own socket, not through it
		return
	}
	s.connect(conn, target)
}

// carry relays an allowed connection, and refuses any other.
func (s *server) carry(conn *net.TCPConn, target netip.AddrPort, answer wire.Answer, seen opening) {
	if answer.Result != wire.ResultAllowed {
		closeFiles(answer.Files)
		s.turnAway(conn, target, answer, seen)
		return
	}
	var t traffic
	// Also where the socket is of no use: the broker counts the connection as open.
	defer func() { s.broker.closed(answer.Number, t.rx.Load(), t.tx.Load()) }()
	other, err := onlySocket(answer.Files)
	if err != nil {
		reset(conn)
		return
	}
	// The bytes that were read to find a name must reach the server first.
	first := func() ([]byte, error) { return seen.bytes, nil }
	if seen.silent {
		first = func() ([]byte, error) { return s.lateOpening(conn, target) }
	}
	if err := s.relay(conn, other, first, &t); errors.Is(err, errBytes) {
		s.refusals.tcp(target, seen.name, wire.ReasonBytes)
	}
}

// errDenied ends a relay whose client showed a denied name after the relay had begun.
var errDenied = errors.New("the client showed a denied name")

// lateOpening asks about the name that a client shows after its connection was made without
// one. The second connection that an allowed answer brings is closed unused: the server may
// have spoken on the first one already.
func (s *server) lateOpening(conn *net.TCPConn, target netip.AddrPort) ([]byte, error) {
	seen := s.waits.late(conn, target.Port())
	if seen.reason != "" {
		s.refusals.tcp(target, seen.name, seen.reason)
		return nil, errDenied
	}
	if seen.name == "" {
		return seen.bytes, nil
	}
	answer, err := s.broker.ask(wire.Request{Open: &wire.Open{Target: target, Name: seen.name, Shown: seen.shown}})
	if err != nil {
		return nil, err
	}
	s.broker.drop(answer)
	if answer.Result == wire.ResultDenied {
		return nil, errDenied
	}
	return seen.bytes, nil
}

// onlySocket turns an answer's only descriptor into a connection. net.FileConn enables
// keep-alive, which ends connections whose peer is gone.
func onlySocket(files []*os.File) (stream, error) {
	defer closeFiles(files)
	if len(files) != 1 {
		return nil, errors.New("an answer without its socket")
	}
	conn, err := net.FileConn(files[0])
	if err != nil {
		return nil, err
	}
	switch c := conn.(type) {
	case *net.TCPConn:
		return c, nil
	case *net.UnixConn:
		return local{c}, nil
	}
	conn.Close()
	return nil, errors.New("an answer with a socket of another kind")
}

// publishedConnection serves a host's client of a published port.
func (s *server) publishedConnection(client *net.TCPConn, port uint16) {
	enter := wire.Enter{Port: port, Client: plain(client.RemoteAddr())}
	answer, err := s.broker.ask(wire.Request{Enter: &enter})
	if err != nil {
		reset(client)
		return
	}
	var t traffic
	defer func() { s.broker.closed(answer.Number, t.rx.Load(), t.tx.Load()) }()
	agent, err := onlySocket(answer.Files)
	if err != nil || answer.Result != wire.ResultAllowed {
		if agent != nil {
			agent.Close()
		}
		reset(client)
		return
	}
	if err := s.relay(agent, client, func() ([]byte, error) { return nil, nil }, &t); errors.Is(err, errBytes) {
		s.refusals.tcp(plain(client.LocalAddr()), "", wire.ReasonBytes)
	}
}

// hostPortConnection serves a connection of the agent to a port of the host's loopback. The
// port allows it, so no name is read.
func (s *server) hostPortConnection(conn *net.TCPConn, port uint16) {
	target := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port)
	answer, err := s.broker.ask(wire.Request{Open: &wire.Open{Target: target}})
	if err != nil {
		reset(conn)
		return
	}
	s.carry(conn, target, answer, opening{noResponse: true})
}
