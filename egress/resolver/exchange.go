package resolver

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"clove.run/clove/egress/dnsmsg"
)

// maxDatagramBytes is more than queries advertise (EDNS), because some servers ignore that,
// and a truncated datagram looks like a malformed one.
const maxDatagramBytes = 4096

// ask queries the servers in order until one gives a definite answer.
func (r *Resolver) ask(ctx context.Context, servers []netip.AddrPort, name string, qtype uint16) (*dnsmsg.Reply, error) {
	if len(servers) == 0 {
		return nil, ErrNoServers
	}
	var failures []error
	failed := false
	for range rounds {
		for _, server := range servers {
			reply, err := r.try(ctx, server, name, qtype)
			switch {
			// First, because err is only a consequence then.
			case ctx.Err() != nil:
				return nil, fmt.Errorf("%w: %w", ErrNoAnswer, errors.Join(append(failures, ctx.Err())...))
			case err != nil:
				failures = append(failures, fmt.Errorf("%s: %w", server, err))
			case reply.RCode() == dnsmsg.RCodeSuccess || reply.RCode() == dnsmsg.RCodeNameError:
				return reply, nil
			default:
				failed = true
			}
		}
		if failed { // a server that answered would give the same answer again
			break
		}
	}
	if failed {
		// SERVFAIL instead of the server's own code: to an agent, REFUSED means that a rule denied the name.
		return dnsmsg.NewReply(name, qtype, dnsmsg.RCodeServerFailure), nil
	}
	return nil, fmt.Errorf("%w: %w", ErrNoAnswer, errors.Join(failures...))
}

// try queries one server, within its share of the time.
func (r *Resolver) try(ctx context.Context, server netip.AddrPort, name string, qtype uint16) (*dnsmsg.Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	reply, err := r.exchange(ctx, server, name, qtype, true)
	if err != nil || (reply.RCode() != dnsmsg.RCodeFormatError && reply.RCode() != dnsmsg.RCodeNotImplemented) {
		return reply, err
	}
	return r.exchange(ctx, server, name, qtype, false) // a server from before EDNS, RFC 6891 section 6.2.2
}

// exchange queries by UDP, and by TCP if the answer is truncated.
func (r *Resolver) exchange(ctx context.Context, server netip.AddrPort, name string, qtype uint16, edns bool) (*dnsmsg.Reply, error) {
	reply, err := r.exchangeOver(ctx, "udp", server, name, qtype, edns)
	if errors.Is(err, dnsmsg.ErrTruncated) {
		return r.exchangeOver(ctx, "tcp", server, name, qtype, edns)
	}
	return reply, err
}

// exchangeOver makes one query over one transport. The connection ends with ctx, which a
// deadline in the past enforces on a blocked read.
func (r *Resolver) exchangeOver(ctx context.Context, network string, server netip.AddrPort, name string, qtype uint16, edns bool) (*dnsmsg.Reply, error) {
	question := dnsmsg.Question{ID: randomID(), Name: name, Type: qtype}
	packet, err := question.Pack(edns)
	if err != nil {
		return nil, err
	}
	// The UDP socket is connected too: the kernel picks a random port, and drops
	// datagrams from other addresses. Both make forged answers harder.
	conn, err := r.dial(ctx, network, server)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })()
	if network == "tcp" {
		return askStream(conn, question, packet)
	}
	return askDatagram(conn, question, packet)
}

func dial(ctx context.Context, network string, server netip.AddrPort) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, server.String())
}

// askDatagram ignores forged and late answers and continues to wait.
func askDatagram(conn net.Conn, question dnsmsg.Question, packet []byte) (*dnsmsg.Reply, error) {
	if _, err := conn.Write(packet); err != nil {
		return nil, err
	}
	buffer := make([]byte, maxDatagramBytes)
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			return nil, err
		}
		reply, err := question.Read(buffer[:n])
		if !errors.Is(err, dnsmsg.ErrForeign) {
			return reply, err
		}
	}
}

// askStream prefixes each message with its length, RFC 1035 section 4.2.2. It is one write,
// because some servers read only the first segment.
func askStream(conn net.Conn, question dnsmsg.Question, packet []byte) (*dnsmsg.Reply, error) {
	framed := binary.BigEndian.AppendUint16(nil, uint16(len(packet)))
	if _, err := conn.Write(append(framed, packet...)); err != nil {
		return nil, err
	}
	var length [2]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return nil, err
	}
	answer := make([]byte, binary.BigEndian.Uint16(length[:]))
	if _, err := io.ReadFull(conn, answer); err != nil {
		return nil, err
	}
	return question.Read(answer)
}

func randomID() uint16 {
	var id [2]byte
	rand.Read(id[:]) // never fails, see crypto/rand
	return binary.BigEndian.Uint16(id[:])
}
