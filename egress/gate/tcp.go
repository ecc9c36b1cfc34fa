package gate

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"time"

	"clove.run/clove/egress/wire"
)

// acceptBackoff is the pause after a failed accept(2), which then would fail
// again at once: descriptors or memory are short.
const acceptBackoff = 50 * time.Millisecond

// admission counts what is served at the same time.
type admission interface {
	admit() wire.Reason
	release()
}

// accept serves each connection on a goroutine of its own, as long as the
// listener lives.
func (s *server) accept(listener *net.TCPListener, limits admission, handle func(*net.TCPConn)) {
	for {
		conn, err := listener.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			if !s.pause(acceptBackoff) {
				return
			}
			continue
		}
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

// pause says whether the gate still serves after it.
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

// targetOf is where the agent wanted to go: what a transparent socket accepts
// has that as its own address.
func targetOf(conn *net.TCPConn) netip.AddrPort { return plain(conn.LocalAddr()) }

// plain is the address without the spellings that two families have for one.
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

// agentConnection serves one connection of the agent's to the outside.
func (s *server) agentConnection(conn *net.TCPConn) {
	target := targetOf(conn)
	if target.Addr().IsLoopback() {
		reset(conn) // it connected to the gate's own port, not through it
		return
	}
	s.connect(conn, target)
}

func (s *server) connect(conn *net.TCPConn, target netip.AddrPort) {
	request := wire.Open{Target: target}
	answer, err := s.broker.ask(wire.Request{Open: &request})
	if err != nil {
		reset(conn)
		return
	}
	var seen opening
	if answer.Verdict == wire.VerdictVerify || answer.Verdict == wire.VerdictVerifyDeny {
		closeFiles(answer.Files)
		seen = peek(conn, target.Port(), answer.Verdict == wire.VerdictVerifyDeny)
		if seen.reason != "" {
			s.refuse(conn, target, seen)
			return
		}
		request.Name, request.Shown = seen.name, seen.shown
		if answer, err = s.broker.ask(wire.Request{Open: &request}); err != nil {
			reset(conn)
			return
		}
	}
	s.carry(conn, target, answer, seen)
}

// carry relays what was allowed, and turns away the rest.
func (s *server) carry(conn *net.TCPConn, target netip.AddrPort, answer wire.Answer, seen opening) {
	if answer.Verdict != wire.VerdictAllowed {
		closeFiles(answer.Files)
		s.turnAway(conn, target, answer, seen)
		return
	}
	var t traffic
	defer func() { s.broker.closed(answer.Number, t.rx.Load(), t.tx.Load()) }()
	other, err := onlySocket(answer.Files)
	if err != nil {
		reset(conn)
		return
	}
	if err := s.relay(conn, other, seen.bytes, &t); errors.Is(err, errBytes) {
		s.refusals.tcp(target, seen.name, wire.ReasonBytes)
	}
}

// onlySocket makes the answer's one descriptor a connection. net.FileConn turns
// keep-alive on, which ends connections whose peer is gone.
func onlySocket(files []*os.File) (*net.TCPConn, error) {
	defer closeFiles(files)
	if len(files) != 1 {
		return nil, errors.New("an answer without its socket")
	}
	conn, err := net.FileConn(files[0])
	if err != nil {
		return nil, err
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		conn.Close()
		return nil, errors.New("an answer with a socket that is not TCP")
	}
	return tcp, nil
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
	if err != nil || answer.Verdict != wire.VerdictAllowed {
		if agent != nil {
			agent.Close()
		}
		reset(client)
		return
	}
	if err := s.relay(agent, client, nil, &t); errors.Is(err, errBytes) {
		s.refusals.tcp(plain(client.LocalAddr()), "", wire.ReasonBytes)
	}
}

// hostPortConnection serves a connection of the agent's to a port of the
// host's loopback, which is allowed by number: there is no name to see.
func (s *server) hostPortConnection(conn *net.TCPConn, port uint16) {
	target := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port)
	answer, err := s.broker.ask(wire.Request{Open: &wire.Open{Target: target}})
	if err != nil {
		reset(conn)
		return
	}
	s.carry(conn, target, answer, opening{mute: true})
}
