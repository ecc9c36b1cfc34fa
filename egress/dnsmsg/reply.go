package dnsmsg

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// maxNameBytes is the longest form of a name in a message, RFC 1035 section 3.1.
const maxNameBytes = 255

// maxChain bounds the CNAMEs that are followed, near the bounds of glibc and unbound.
const maxChain = 16

// negativeTTL is the TTL of negative answers that clove makes. It is short, because rules
// can change while an agent runs.
const negativeTTL = 5 * time.Second

// Reply is the answer to one question, without its ID. It is not safe for concurrent use.
type Reply struct {
	msg *dns.Msg
}

// Address is an address in a reply.
type Address struct {
	Addr netip.Addr
	TTL  time.Duration // the lowest of all records on the way to it
}

// NewReply makes an answer without records. With RCodeSuccess it means that the name has no
// record of this type.
func NewReply(name string, qtype uint16, rcode int) *Reply {
	msg := new(dns.Msg)
	msg.Response, msg.RecursionDesired, msg.RecursionAvailable, msg.Rcode = true, true, true, rcode
	msg.Question = []dns.Question{{Name: dns.Fqdn(name), Qtype: qtype, Qclass: dns.ClassINET}}
	return &Reply{msg: msg}
}

// ParseReply parses a message of Pack or of a name server, and keeps only the records that
// answer its question. Question.Read also checks that it is the expected answer.
func ParseReply(packet []byte) (*Reply, error) {
	msg, err := unpack(packet)
	if err != nil {
		return nil, err
	}
	if !msg.Response || msg.Opcode != dns.OpcodeQuery || len(msg.Question) != 1 || msg.Question[0].Qclass != dns.ClassINET {
		return nil, errors.New("cannot use DNS message: it is no answer to one question")
	}
	reply := NewReply(msg.Question[0].Name, msg.Question[0].Qtype, msg.Rcode)
	reply.msg.Answer = chainOf(msg.Question[0], msg.Answer)
	reply.msg.Ns = slices.DeleteFunc(msg.Ns, func(r dns.RR) bool { return r.Header().Rrtype != dns.TypeSOA })
	if err := checkRecords(reply.msg.Answer, reply.msg.Ns); err != nil {
		return nil, err
	}
	return reply, nil
}

// unpack also compares the header's counts, which the library ignores: a message that was
// cut between two records would look complete.
func unpack(packet []byte) (*dns.Msg, error) {
	msg := new(dns.Msg)
	if err := msg.Unpack(packet); err != nil {
		return nil, fmt.Errorf("cannot read DNS message: %w", err)
	}
	for i, count := range []int{len(msg.Question), len(msg.Answer), len(msg.Ns), len(msg.Extra)} {
		if claimed := int(word(packet, 4+2*i)); claimed != count {
			return nil, fmt.Errorf("cannot read DNS message: it has %d records where it says %d", count, claimed)
		}
	}
	return msg, nil
}

// checkRecords rejects records that the library cannot parse again after packing. It
// accepts record data that ends early, and packs a missing name as no bytes: in a SOA,
// numbers then take the place of the name.
func checkRecords(sections ...[]dns.RR) error {
	for _, record := range slices.Concat(sections...) {
		switch record.(type) {
		case *dns.A, *dns.AAAA, *dns.CNAME: // one field each, which the library parsed or rejected
			continue
		}
		packet := make([]byte, dns.Len(record)+1) // the size that Msg.Pack uses
		end, err := dns.PackRR(record, packet, 0, nil, false)
		if err == nil {
			_, _, err = dns.UnpackRR(packet[:end], 0)
		}
		if err != nil {
			return fmt.Errorf("cannot use DNS message: its %s record: %w", dns.Type(record.Header().Rrtype), err)
		}
	}
	return nil
}

// chainOf returns the records that answer q, in the order of its CNAME chain, because glibc
// reads them once from first to last.
func chainOf(q dns.Question, records []dns.RR) []dns.RR {
	owned := map[string][]dns.RR{}
	for _, record := range records {
		header := record.Header()
		if header.Class == dns.ClassINET && slices.Contains([]uint16{q.Qtype, dns.TypeCNAME, dns.TypeRRSIG}, header.Rrtype) {
			owner := dns.CanonicalName(header.Name)
			owned[owner] = append(owned[owner], record)
		}
	}
	var chain []dns.RR
	name := dns.CanonicalName(q.Name)
	for range maxChain {
		here := owned[name]
		delete(owned, name) // ends a loop in the chain
		chain = append(chain, here...)
		next := slices.IndexFunc(here, func(r dns.RR) bool { return r.Header().Rrtype == dns.TypeCNAME })
		if next < 0 || q.Qtype == dns.TypeCNAME {
			break
		}
		name = dns.CanonicalName(here[next].(*dns.CNAME).Target)
	}
	return chain
}

// RCode is the response code.
func (r *Reply) RCode() int { return r.msg.Rcode }

// Name is the question's name, with the final dot.
func (r *Reply) Name() string { return r.msg.Question[0].Name }

// Type is the question's type.
func (r *Reply) Type() uint16 { return r.msg.Question[0].Qtype }

// Addresses returns the addresses that a client may connect to because of this reply: of A
// and AAAA records, and the hints of HTTPS and SVCB records.
func (r *Reply) Addresses() []Address {
	ttl, _ := r.TTL()
	var found []Address
	seen := map[netip.Addr]bool{} // a hostile server can send 16000 hints
	for _, record := range r.msg.Answer {
		for _, addr := range addressesOf(record) {
			if !seen[addr] {
				seen[addr] = true
				found = append(found, Address{Addr: addr, TTL: ttl})
			}
		}
	}
	return found
}

// TTL is how long the reply is valid: the lowest TTL of the answer's records, for a
// negative answer also the SOA's (RFC 2308 section 5). known is false if the reply does not
// say.
func (r *Reply) TTL() (ttl time.Duration, known bool) {
	least := func(seconds uint32) {
		if d := time.Duration(seconds) * time.Second; !known || d < ttl {
			ttl, known = d, true
		}
	}
	negative := r.Negative()
	for _, record := range r.msg.Answer {
		least(record.Header().Ttl)
	}
	if !negative {
		return ttl, known
	}
	timed := false
	for _, record := range r.msg.Ns {
		if soa, ok := record.(*dns.SOA); ok {
			least(soa.Hdr.Ttl)
			least(soa.Minttl)
			timed = true
		}
	}
	return ttl, timed
}

// Negative reports that no record has the queried type.
func (r *Reply) Negative() bool {
	return !slices.ContainsFunc(r.msg.Answer, func(record dns.RR) bool { return record.Header().Rrtype == r.Type() })
}

// Age subtracts the time that the reply was cached from its TTLs.
func (r *Reply) Age(kept time.Duration) {
	seconds := uint32(max(0, kept/time.Second))
	for _, section := range [][]dns.RR{r.msg.Answer, r.msg.Ns} {
		for _, record := range section {
			record.Header().Ttl -= min(seconds, record.Header().Ttl)
		}
	}
}

// Pack is the whole message, with ID 0.
func (r *Reply) Pack() ([]byte, error) {
	msg := *r.msg
	msg.Compress = true
	if msg.Rcode > 0xf { // the upper bits need an OPT record, which Finish adds later
		msg.Rcode = RCodeServerFailure
	}
	definite := msg.Rcode == RCodeSuccess || msg.Rcode == RCodeNameError
	if definite && r.Negative() && len(msg.Ns) == 0 {
		msg.Ns = []dns.RR{ownSOA()}
	}
	packet, err := msg.Pack()
	if err == nil {
		err = checkName(r.Name())
	}
	if err == nil && len(packet) > MaxTCPBytes {
		err = fmt.Errorf("%d bytes are more than a message can have", len(packet))
	}
	if err != nil {
		return nil, fmt.Errorf("cannot pack DNS message: %w", err)
	}
	return packet, nil
}

// checkName checks the length of a name: the library packs longer ones, and then cannot parse them.
func checkName(name string) error {
	_, err := dns.PackDomainName(name, make([]byte, maxNameBytes), 0, nil, false)
	return err
}

// ownSOA lets clients cache a negative answer that no zone gave. Its owner is the root, an
// ancestor of every name, so no client rejects it as out of zone.
func ownSOA() *dns.SOA {
	seconds := uint32(negativeTTL / time.Second)
	return &dns.SOA{
		Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: seconds},
		Ns:  "localhost.", Mbox: "nobody.invalid.", Serial: 1, Refresh: 3600, Retry: 1200, Expire: 604800, Minttl: seconds,
	}
}

// String is the question, the code and the records, for messages.
func (r *Reply) String() string {
	text := []string{r.Name(), dns.Type(r.Type()).String(), dns.RcodeToString[r.RCode()]}
	for _, record := range r.msg.Answer {
		text = append(text, strings.ReplaceAll(record.String(), "\t", " "))
	}
	return strings.Join(text, "; ")
}
