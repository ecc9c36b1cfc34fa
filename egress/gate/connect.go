package gate

import (
	"net"
	"net/netip"
	"sync"

	"clove.run/clove/egress/wire"
)

// connect asks the broker, and reads a name from the first bytes if the broker requires
// one. If it required one for this target before, the name is read first, which saves a
// round trip. The answer alone decides how that name is used: after a change of rules a
// wrong guess costs time only.
func (s *server) connect(conn *net.TCPConn, target netip.AddrPort) {
	var seen opening
	if s.named.has(target) {
		seen = s.waits.peek(conn, target.Port(), true)
	}
	answer, err := s.open(conn, target, seen, seen.name != "")
	if err == nil && seen.name == "" {
		// Only then: an answer to a request with a name does not say whether a name is
		// required.
		s.named.learn(target, answer.Result)
	}
	if err == nil && (answer.Result == wire.ResultVerify || answer.Result == wire.ResultVerifyDeny) {
		closeFiles(answer.Files)
		seen = s.waits.complete(seen, conn, target.Port(), answer.Result == wire.ResultVerifyDeny)
		if seen.reason != "" {
			s.refuse(conn, target, seen)
			return
		}
		answer, err = s.open(conn, target, seen, true)
	}
	if err != nil {
		reset(conn)
		return
	}
	s.carry(conn, target, answer, seen)
}

// open requests a connection, with the name that was seen if withName is set.
func (s *server) open(conn *net.TCPConn, target netip.AddrPort, seen opening, withName bool) (wire.Answer, error) {
	request := wire.Open{Target: target}
	if withName {
		request.Name, request.Shown = seen.name, seen.shown
	}
	return s.broker.askFor(wire.Request{Open: &request}, &client{conn: conn, target: target})
}

// complete is peek for a connection of which bytes may have been read already: they cannot
// be read again.
func (w waits) complete(o opening, conn net.Conn, port uint16, mayPass bool) opening {
	if len(o.bytes) == 0 {
		return w.peek(conn, port, mayPass)
	}
	if o.shown == wire.ShownNothing && !mayPass {
		o.reason = wire.ReasonNoName
	}
	return o
}

// namedTargets bounds the map of targets; when it is full it is cleared.
const namedTargets = 1024

// named are the targets for which the broker last required a name.
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

// learn remembers a target with ResultVerify, and forgets it when the rules no longer
// require a name there.
func (n *named) learn(target netip.AddrPort, result wire.Result) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if result != wire.ResultVerify {
		delete(n.targets, target)
		return
	}
	if len(n.targets) >= namedTargets {
		clear(n.targets)
	}
	n.targets[target] = true
}
