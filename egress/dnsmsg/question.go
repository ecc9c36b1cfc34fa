package dnsmsg

import (
	"errors"
	"fmt"
	"strings"

	"github.com/miekg/dns"
)

// UpstreamUDPBytes is the UDP size that queries advertise. No path fragments it (DNS flag
// day 2020).
const UpstreamUDPBytes = 1232

// Errors of Question.Read.
var (
	// ErrForeign: the packet is not the answer to this question; the real one may still come.
	ErrForeign = errors.New("it is not the answer to the question")
	// ErrTruncated: the answer did not fit; repeat the query by TCP.
	ErrTruncated = errors.New("the answer is truncated")
)

// Question is a query to a name server.
type Question struct {
	ID   uint16
	Name string
	Type uint16
}

// Pack is the message to send. It does not request DNSSEC records: clove does not validate,
// and a filtered answer cannot be validated inside.
func (q Question) Pack(edns bool) ([]byte, error) {
	msg := new(dns.Msg)
	msg.Id, msg.RecursionDesired = q.ID, true
	msg.Question = []dns.Question{{Name: dns.Fqdn(q.Name), Qtype: q.Type, Qclass: dns.ClassINET}}
	if edns {
		msg.SetEdns0(UpstreamUDPBytes, false)
	}
	packet, err := msg.Pack()
	if err = errors.Join(err, checkName(msg.Question[0].Name)); err != nil {
		return nil, fmt.Errorf("cannot ask for %q: %w", q.Name, err)
	}
	return packet, nil
}

// QuestionBytes is the size of a query for name without options (RFC 1035 section 4.1), by which
// both sides of the gate's channel count it.
func QuestionBytes(name string) int64 {
	const terminators, typeAndClass = 2, 4 // the first label's length and the root's
	return headerBytes + terminators + int64(len(name)) + typeAndClass
}

// Read parses packet as the answer to q, if ID, question and flags match. A server that
// does not know EDNS, or that refuses, may leave out the question in its error (RFC 6891
// section 7).
func (q Question) Read(packet []byte) (*Reply, error) {
	if len(packet) < headerBytes || word(packet, 0) != q.ID || word(packet, 2)&bitQR == 0 {
		return nil, ErrForeign
	}
	bits := word(packet, 2)
	if rcode := int(bits & 0xf); word(packet, 4) == 0 && rcode != RCodeSuccess && rcode != RCodeNameError {
		return NewReply(q.Name, q.Type, rcode), nil
	}
	name, end, err := dns.UnpackDomainName(packet, headerBytes)
	if err != nil || !strings.EqualFold(name, dns.Fqdn(q.Name)) || len(packet) < end+4 ||
		word(packet, end) != q.Type || word(packet, end+2) != dns.ClassINET {
		return nil, ErrForeign
	}
	if bits&bitTC != 0 {
		return nil, ErrTruncated
	}
	return ParseReply(packet)
}
