package gate

import (
	"net"
	"net/netip"
	"sync"

	"clove.run/clove/egress/wire"
)

// connect asks first, and looks for a name where the broker wants one. Where it
// wanted one for this target before, it looks first: one question instead of two.
// What is found then is only used as the answer demands, so that a guess
// that new rules made wrong costs time and nothing else.
func (s *server) connect(conn *net.TCPConn, target netip.AddrPort) {
	var seen opening
	if s.named.has(target) {
		seen = s.waits.peek(conn, target.Port(), true)
	}
	answer, err := s.open(target, seen, seen.name != "")
	if err == nil && seen.name == "" {
		s.named.learn(target, answer.Verdict)
	}
	if err == nil && (answer.Verdict == wire.VerdictVerify || answer.Verdict == wire.VerdictVerifyDeny) {
		closeFiles(answer.Files)
		seen = s.waits.complete(seen, conn, target.Port(), answer.Verdict == wire.VerdictVerifyDeny)
		if seen.reason != "" {
			s.refuse(conn, target, seen)
			return
		}
		answer, err = s.open(target, seen, true)
	}
	if err != nil {
		reset(conn)
		return
	}
	s.carry(conn, target, answer, seen)
}

// open asks for a connection, telling what was seen or not.
func (s *server) open(target netip.AddrPort, seen opening, tell bool) (wire.Answer, error) {
	request := wire.Open{Target: target}
	if tell {
		request.Name, request.Shown = seen.name, seen.shown
	}
	return s.broker.ask(wire.Request{Open: &request})
}

// complete is peek for a connection of which something may have been read: what
// was read is not there to be read again.
func (w waits) complete(o opening, conn net.Conn, port uint16, mayPass bool) opening {
	if len(o.bytes) == 0 {
		return w.peek(conn, port, mayPass)
	}
	if o.shown == wire.ShownNothing && !mayPass {
		o.reason = wire.ReasonNoName
	}
	return o
}

// namedTargets bounds the memory of targets; it begins anew when it is full.
const namedTargets = 1024

// named are the targets for which the broker wanted a name the last time that it
// was asked without one.
type named struct {
	mu      sync.Mutex // guards targets
	targets map[netip.AddrPort]bool
}

func newNamed() *named { return &named{targets: map[netip.AddrPort]bool{}} }

func (n *named) has(target netip.AddrPort) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.targets[target]
}

func (n *named) learn(target netip.AddrPort, verdict wire.Verdict) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if verdict != wire.VerdictVerify {
		delete(n.targets, target)
		return
	}
	if len(n.targets) >= namedTargets {
		clear(n.targets)
	}
	n.targets[target] = true
}
