package dnsmsg

import (
	"errors"
	"fmt"
	"strings"

	"github.com/miekg/dns"
)

// Limits for Finish.
const (
	// MaxUDPBytes bounds an answer by UDP. Inside there is only loopback, whose
	// MTU takes this unfragmented.
	MaxUDPBytes = 4096
	// MaxTCPBytes is what TCP's two bytes of length can say.
	MaxTCPBytes = dns.MaxMsgSize
)

// Finish makes the broker's message the answer to q. A limit of MaxTCPBytes
// means TCP; below it is UDP, and what the client said it can receive counts as
// well. What does not fit is cut off and the TC bit says so.
func Finish(message []byte, q Query, limit int) ([]byte, error) {
	msg, err := unpack(message)
	if err != nil {
		return nil, err
	}
	if !msg.Response || len(msg.Question) != 1 || msg.Question[0].Qtype != q.Type || !strings.EqualFold(msg.Question[0].Name, q.Name) {
		return nil, errors.New("cannot use DNS message: it answers another question")
	}
	if err := checkRecords(msg.Answer, msg.Ns); err != nil {
		return nil, err
	}
	if limit < MaxTCPBytes {
		limit = min(limit, q.UDPSize)
	}
	restoreCase(msg, q.Name)
	q.head(msg, msg.Rcode)
	return fit(msg, limit)
}

// Fail is the answer to q that says nothing but rcode.
func Fail(q Query, rcode int) []byte {
	msg := new(dns.Msg)
	q.head(msg, rcode)
	packet, err := msg.Pack()
	if err != nil { // the query's name was not one: the header is all that can be said
		msg.Question, msg.Extra, msg.Rcode = nil, nil, msg.Rcode&0xf
		packet, _ = msg.Pack()
	}
	return packet
}

// head sets all of msg that follows from the query.
func (q Query) head(msg *dns.Msg, rcode int) {
	msg.MsgHdr = dns.MsgHdr{
		Id: q.ID, Response: true, Opcode: int(q.opcode), Rcode: rcode, RecursionAvailable: true,
		RecursionDesired: q.RecursionDesired, CheckingDisabled: q.CheckingDisabled,
	}
	msg.Question, msg.Extra = nil, nil
	if q.Name != "" {
		msg.Question = []dns.Question{{Name: q.Name, Qtype: q.Type, Qclass: dns.ClassINET}}
	}
	if q.EDNS {
		msg.SetEdns0(MaxQueryBytes, q.DNSSECOK)
	} else if rcode > 0xf { // the upper bits travel in the OPT record
		msg.Rcode = RCodeServerFailure
	}
}

// restoreCase gives records of the question's name its spelling: clients that
// mix the case as a nonce compare it, and compression needs equal bytes.
func restoreCase(msg *dns.Msg, name string) {
	for _, record := range msg.Answer {
		if header := record.Header(); strings.EqualFold(header.Name, name) {
			header.Name = name
		}
	}
}

// fit packs msg into limit bytes.
func fit(msg *dns.Msg, limit int) ([]byte, error) {
	msg.Truncate(limit)
	msg.Compress = true
	packet, err := msg.Pack()
	if err == nil && len(packet) > limit {
		// The library estimates before it packs. The question and the OPT record
		// always fit: 12 + 255 + 4 + 11 bytes.
		msg.Answer, msg.Ns, msg.Truncated = nil, nil, true
		packet, err = msg.Pack()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot pack DNS message: %w", err)
	}
	return packet, nil
}
