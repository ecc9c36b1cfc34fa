package dnsmsg

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/miekg/dns"
)

// MaxQueryBytes bounds a query, by UDP and by TCP. The largest useful one is a name of 255
// bytes with some EDNS options.
const MaxQueryBytes = 4096

// Types that callers branch on (RFC 1035, 3596, 9460).
const (
	TypeA     = dns.TypeA
	TypeAAAA  = dns.TypeAAAA
	TypePTR   = dns.TypePTR
	TypeSVCB  = dns.TypeSVCB
	TypeHTTPS = dns.TypeHTTPS
)

// Response codes (RFC 1035 section 4.1.1, RFC 6891 section 9).
const (
	RCodeSuccess        = dns.RcodeSuccess
	RCodeFormatError    = dns.RcodeFormatError
	RCodeServerFailure  = dns.RcodeServerFailure
	RCodeNameError      = dns.RcodeNameError
	RCodeNotImplemented = dns.RcodeNotImplemented
	RCodeRefused        = dns.RcodeRefused
	RCodeBadVersion     = dns.RcodeBadVers
)

// headerBytes is the fixed part of every message, RFC 1035 section 4.1.1.
const headerBytes = 12

// Bits of the header's second word.
const (
	bitQR         = 1 << 15
	bitTC         = 1 << 9
	bitRD         = 1 << 8
	bitAD         = 1 << 5
	bitCD         = 1 << 4
	opcodeShift   = 11
	opcodeMask    = 0xf << opcodeShift
	bitsOfQueries = opcodeMask | bitRD | bitAD | bitCD // what a query may set
)

// Query is one question of class IN. It is a value that shares no memory with the packet.
type Query struct {
	ID   uint16
	Name string // as sent, with its case and final dot; other bytes are escaped as in zone files (RFC 1035 section 5.1)
	Type uint16

	RecursionDesired bool
	CheckingDisabled bool
	EDNS             bool // the query had an OPT record, so the answer has one
	DNSSECOK         bool
	UDPSize          int // what the client can receive by UDP, 512 or more (RFC 6891 section 6.2.3)

	opcode uint16 // only of a refused query: the answer repeats it
}

// QueryError says why a query is not served.
type QueryError struct {
	RCode  int // the code for the answer
	Reason string
	Query  Query // as far as it was parsed

	answerable bool
}

func (e *QueryError) Error() string { return "cannot serve DNS query: " + e.Reason }

// Answer is the answer to send; nil where none may be sent. That is a packet without an ID,
// or one that is an answer itself: two servers would answer each other for ever.
func (e *QueryError) Answer() []byte {
	if !e.answerable {
		return nil
	}
	return Fail(e.Query, e.RCode)
}

// ParseQuery parses what an agent sent to port 53; of TCP, without the length bytes. The
// error is a *QueryError.
func ParseQuery(packet []byte) (Query, error) {
	q, err := parseQuery(packet)
	if err != nil {
		err.Query = q
		err.answerable = len(packet) >= headerBytes && word(packet, 2)&bitQR == 0
		return Query{}, err
	}
	return q, nil
}

func word(packet []byte, offset int) uint16 { return binary.BigEndian.Uint16(packet[offset:]) }

// parseQuery goes on only while everything is as a stub resolver sends it. The parsed part
// goes into the error's answer.
func parseQuery(packet []byte) (Query, *QueryError) {
	q, err := parseHeader(packet)
	if err != nil {
		return q, err
	}
	end, err := q.parseQuestion(packet)
	if err != nil {
		return q, err
	}
	if err := q.parseEDNS(packet, end); err != nil {
		return q, err
	}
	return q, q.judgeType()
}

// parseHeader checks the counts itself, because the library trusts them.
func parseHeader(packet []byte) (Query, *QueryError) {
	if len(packet) < headerBytes {
		return Query{}, malformed("%d bytes are less than a header", len(packet))
	}
	bits := word(packet, 2)
	q := Query{
		ID: word(packet, 0), UDPSize: dns.MinMsgSize, opcode: bits & opcodeMask >> opcodeShift,
		RecursionDesired: bits&bitRD != 0, CheckingDisabled: bits&bitCD != 0,
	}
	questions, answers, authorities, additionals := word(packet, 4), word(packet, 6), word(packet, 8), word(packet, 10)
	switch {
	case len(packet) > MaxQueryBytes:
		return q, malformed("%d bytes are more than %d", len(packet), MaxQueryBytes)
	case bits&bitQR != 0:
		return q, malformed("it is an answer")
	case q.opcode != dns.OpcodeQuery:
		return q, &QueryError{RCode: RCodeNotImplemented, Reason: fmt.Sprintf("opcode %d is not QUERY", q.opcode)}
	case bits&^bitsOfQueries != 0:
		return q, malformed("flags %#04x are not a query's", bits)
	case questions != 1 || answers != 0 || authorities != 0 || additionals > 1:
		return q, malformed("it has %d questions and %d, %d, %d records", questions, answers, authorities, additionals)
	}
	return q, nil
}

// parseQuestion returns the offset after the question.
func (q *Query) parseQuestion(packet []byte) (int, *QueryError) {
	name, end, err := dns.UnpackDomainName(packet, headerBytes)
	if err != nil {
		return 0, malformed("its name: %v", err)
	}
	// The first name of a message has only the header before it, so a compression
	// pointer in it is never legitimate. It must be packed byte by byte.
	plain := make([]byte, maxNameBytes)
	n, err := dns.PackDomainName(name, plain, 0, nil, false)
	if err != nil || !bytes.Equal(plain[:n], packet[headerBytes:end]) {
		return 0, malformed("its name is compressed")
	}
	if len(packet) < end+4 {
		return 0, malformed("its question is cut off")
	}
	q.Name, q.Type = name, word(packet, end)
	if class := word(packet, end+2); class != dns.ClassINET {
		return 0, &QueryError{RCode: RCodeRefused, Reason: fmt.Sprintf("class %d is not IN", class)}
	}
	return end + 4, nil
}

// parseEDNS parses the only record that a query may have, OPT.
func (q *Query) parseEDNS(packet []byte, offset int) *QueryError {
	if word(packet, 10) == 0 {
		if offset != len(packet) {
			return malformed("%d bytes follow the question", len(packet)-offset)
		}
		return nil
	}
	record, end, err := dns.UnpackRR(packet, offset)
	if err != nil {
		return malformed("its record: %v", err)
	}
	opt, ok := record.(*dns.OPT)
	if !ok || opt.Hdr.Name != "." || end != len(packet) {
		return malformed("its record is not just an OPT of the root")
	}
	q.EDNS, q.DNSSECOK = true, opt.Do()
	q.UDPSize = max(dns.MinMsgSize, int(opt.UDPSize()))
	if version := opt.Version(); version != 0 {
		return &QueryError{RCode: RCodeBadVersion, Reason: fmt.Sprintf("EDNS version %d is not 0", version)}
	}
	return nil
}

// judgeType refuses zone transfers, ANY and similar types. RFC 6895 section 3.1 reserves
// 128 to 255 for meta types and query types, and RFC 8482 allows a server not to answer
// ANY.
func (q *Query) judgeType() *QueryError {
	if q.Type == dns.TypeNone || q.Type == dns.TypeOPT || (q.Type >= 128 && q.Type <= 255) {
		return &QueryError{RCode: RCodeNotImplemented, Reason: "type " + dns.Type(q.Type).String() + " is no type of data"}
	}
	return nil
}

func malformed(format string, args ...any) *QueryError {
	return &QueryError{RCode: RCodeFormatError, Reason: fmt.Sprintf(format, args...)}
}
