package dnsmsg

import (
	"errors"
	"fmt"
	"strings"

	"github.com/miekg/dns"
)

// Limits for Finish.
const (
	// MaxUDPBytes bounds an answer by UDP. Inside there is only loopback, whose MTU is
	// larger, so nothing is fragmented.
	MaxUDPBytes = 4096
	// MaxTCPBytes is the largest value of TCP's two length bytes.
	MaxTCPBytes = dns.MaxMsgSize
)

// Finish turns the broker's message into the answer to q. A limit of MaxTCPBytes means TCP.
// Below it is UDP, where the client's own size limit applies too. If records do not fit
// they are removed and the TC bit is set.
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

// Fail is an answer to q with rcode and no records.
func Fail(q Query, rcode int) []byte {
	msg := new(dns.Msg)
	q.head(msg, rcode)
	packet, err := msg.Pack()
	if err != nil { // the query's name was invalid, so the answer is the header alone
		msg.Question, msg.Extra, msg.Rcode = nil, nil, msg.Rcode&0xf
		packet, _ = msg.Pack()
	}
	return packet
}

// head sets everything in msg that follows from the query.
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
	} else if rcode > 0xf { // the upper bits of the code need an OPT record
		msg.Rcode = RCodeServerFailure
	}
}

// restoreCase gives records of the question's name the spelling of the query. Clients that
// mix the case as a nonce compare it, and name compression needs equal bytes.
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
		// The library only estimates the size. The question and the OPT record
		// always fit: 12 + 255 + 4 + 11 bytes.
		msg.Answer, msg.Ns, msg.Truncated = nil, nil, true
		packet, err = msg.Pack()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot pack DNS message: %w", err)
	}
	return packet, nil
}
