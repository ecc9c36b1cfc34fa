package gate

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"clove.run/clove/egress/dnsmsg"
	"clove.run/clove/egress/wire"
	"golang.org/x/time/rate"
)

// Bounds on DNS queries, far above what programs need.
const (
	queriesPerSecond = 200
	queriesBurst     = 400
	queriesInFlight  = 64
	dnsStreams       = 16
	// dnsIdle is how long a TCP connection may wait for its next query.
	dnsIdle = 10 * time.Second
)

// queries bounds the cost of the agent's DNS queries, over all sockets together. Excess
// queries wait in the socket buffers, or are dropped there, so an honest burst is delayed
// and does not fail.
type queries struct {
	rate     *rate.Limiter
	inFlight chan struct{}
}

func newQueries() *queries {
	return &queries{rate: rate.NewLimiter(queriesPerSecond, queriesBurst), inFlight: make(chan struct{}, queriesInFlight)}
}

// begin waits until one more query may be answered; false if the gate ends. Each begin
// needs one end.
func (s *server) begin(target netip.AddrPort, udp bool) bool {
	// Reserved and not refused: an excess query waits, and to the client the server is
	// slow.
	if delay := s.queries.rate.Reserve().Delay(); delay > 0 {
		s.refusals.add(wire.Refused{Target: target, UDP: udp, Reason: wire.ReasonRate})
		if !s.pause(delay) {
			return false
		}
	}
	select {
	case s.queries.inFlight <- struct{}{}:
		return true
	case <-s.done:
		return false
	}
}

func (s *server) end() { <-s.queries.inFlight }

// serveDNS answers queries that come as datagrams.
func (s *server) serveDNS(conn *net.UDPConn) {
	buffer := make([]byte, dnsmsg.MaxQueryBytes+1) // one byte more, to detect a query that is too long
	s.receiveAll(conn, buffer, func(d datagram) {
		if !s.begin(d.to, true) {
			return
		}
		packet := append([]byte(nil), buffer[:d.bytes]...)
		go func() {
			defer s.end()
			if reply := s.reply(packet, d.to, true); reply != nil {
				_ = sendDatagram(conn, reply, d) // after an error the client repeats the query
			}
		}()
	})
}

// reply returns the answer to one message; nil where none may be sent. The broker gets the
// name in lower case and without the final dot; Finish restores the query's own spelling. A
// broker without an answer means SERVFAIL, on which resolvers try again, a denial means
// REFUSED.
func (s *server) reply(packet []byte, target netip.AddrPort, udp bool) []byte {
	q, err := dnsmsg.ParseQuery(packet)
	if err != nil {
		s.refusals.add(wire.Refused{Target: target, UDP: udp, Reason: wire.ReasonQuery})
		var refused *dnsmsg.QueryError
		if errors.As(err, &refused) {
			return refused.Answer()
		}
		return nil
	}
	name := strings.TrimSuffix(strings.ToLower(q.Name), ".")
	answer, err := s.broker.ask(wire.Request{Lookup: &wire.Lookup{Name: name, Type: q.Type}})
	closeFiles(answer.Files)
	// The broker has denied the question if too few were left; here they are missing for
	// connections.
	s.limits.bytes.take(answer.Bytes)
	if err != nil || answer.Result == wire.ResultUnreachable {
		return dnsmsg.Fail(q, dnsmsg.RCodeServerFailure)
	}
	if answer.Result != wire.ResultAllowed {
		return dnsmsg.Fail(q, dnsmsg.RCodeRefused)
	}
	limit := dnsmsg.MaxTCPBytes
	if udp {
		limit = dnsmsg.MaxUDPBytes
	}
	reply, err := dnsmsg.Finish(answer.Message, q, limit)
	if err != nil {
		return dnsmsg.Fail(q, dnsmsg.RCodeServerFailure)
	}
	return reply
}

// dnsConnections bounds the TCP connections for DNS, separately from the others: an agent
// that has used up those can still resolve names, and learn by name why a connection is
// refused.
type dnsConnections struct{ open atomic.Int64 }

// admit adds before it compares, because a check first would let two connections pass at once.
func (d *dnsConnections) admit() wire.Reason {
	if d.open.Add(1) > dnsStreams {
		d.open.Add(-1)
		return wire.ReasonConnections
	}
	return ""
}

func (d *dnsConnections) release() { d.open.Add(-1) }

func (s *server) dnsStream(file *os.File) (func(), error) {
	listener, err := s.listener(file)
	if err != nil {
		return nil, err
	}
	return func() { s.accept(listener, s.dnsConnections, s.dnsConnection) }, nil
}

// dnsConnection answers the queries of one connection in order. RFC 7766 allows any order;
// in order, one goroutine is enough.
func (s *server) dnsConnection(conn *net.TCPConn) {
	defer conn.Close()
	target := targetOf(conn)
	buffer := make([]byte, dnsmsg.MaxQueryBytes)
	for {
		if conn.SetDeadline(time.Now().Add(dnsIdle)) != nil {
			return
		}
		n, ok := readMessage(conn, buffer)
		if !ok || !s.begin(target, false) {
			return
		}
		reply := s.reply(buffer[:n], target, false)
		s.end()
		// The deadline is set anew, because the answer may have taken longer than dnsIdle.
		if reply == nil || conn.SetDeadline(time.Now().Add(dnsIdle)) != nil || !writeMessage(conn, reply) {
			return
		}
	}
}

// lengthBytes precede each message on a stream, RFC 1035 section 4.2.2.
const lengthBytes = 2

// readMessage reads a message that fits buffer. A longer one ends the connection: its rest
// would be taken for the next message.
func readMessage(from io.Reader, buffer []byte) (int, bool) {
	var length [lengthBytes]byte
	if _, err := io.ReadFull(from, length[:]); err != nil {
		return 0, false
	}
	n := int(binary.BigEndian.Uint16(length[:]))
	if n > len(buffer) {
		return 0, false
	}
	_, err := io.ReadFull(from, buffer[:n])
	return n, err == nil
}

func writeMessage(to io.Writer, message []byte) bool {
	framed := binary.BigEndian.AppendUint16(make([]byte, 0, lengthBytes+len(message)), uint16(len(message)))
	_, err := to.Write(append(framed, message...))
	return err == nil
}
