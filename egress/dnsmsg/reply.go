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

// maxNameBytes is a name's longest form in a message, RFC 1035 section 3.1.
const maxNameBytes = 255

// maxChain bounds the CNAMEs that are followed. glibc and unbound give up in
// the same region.
const maxChain = 16

// negativeTTL times a negative answer of our own making. It is short, because
// rules can change while an agent runs.
const negativeTTL = 5 * time.Second

// Reply is the answer to one question, without its ID. It is not safe for
// concurrent use.
type Reply struct {
	msg *dns.Msg
}

// Address is one that a reply leads to.
type Address struct {
	Addr netip.Addr
	TTL  time.Duration // the least of all records that led to it
}

// NewReply makes an answer without records: with RCodeSuccess it says that the
// name has nothing of this type.
func NewReply(name string, qtype uint16, rcode int) *Reply {
	msg := new(dns.Msg)
	msg.Response, msg.RecursionDesired, msg.RecursionAvailable, msg.Rcode = true, true, true, rcode
	msg.Question = []dns.Question{{Name: dns.Fqdn(name), Qtype: qtype, Qclass: dns.ClassINET}}
	return &Reply{msg: msg}
}

// ParseReply reads a message that Pack made, or one that a name server sent,
// and keeps what answers its question. Question.Read also checks that it is the
// awaited one.
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

// unpack also compares the header's counts, which the library does not hold to:
// a message that was cut between two records would say that there are no more.
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

// checkRecords refuses records that the library cannot read again once it has
// packed them. It takes data that ends early, and packs a name that was missing
// as no bytes at all: the numbers of a SOA then stand where its name should.
func checkRecords(sections ...[]dns.RR) error {
	for _, record := range slices.Concat(sections...) {
		switch record.(type) {
		case *dns.A, *dns.AAAA, *dns.CNAME: // most records: one field, which the library read or refused
			continue
		}
		packet := make([]byte, dns.Len(record)+1) // as much as Msg.Pack provides
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

// chainOf returns the records that answer q, in the order in which its CNAMEs
// lead to them: glibc reads them once, from the first to the last.
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
		delete(owned, name) // a second visit would be a loop
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

// Addresses are those that a client may connect to because of this reply: of A
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

// TTL is how long the reply holds, and whether it says so at all: the least of
// the answer's records; of a negative answer what its SOA says (RFC 2308
// section 5).
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

// Negative says that no record has the type that was asked for.
func (r *Reply) Negative() bool {
	return !slices.ContainsFunc(r.msg.Answer, func(record dns.RR) bool { return record.Header().Rrtype == r.Type() })
}

// Age takes away the time that the reply was kept.
func (r *Reply) Age(kept time.Duration) {
	seconds := uint32(max(0, kept/time.Second))
	for _, section := range [][]dns.RR{r.msg.Answer, r.msg.Ns} {
		for _, record := range section {
			record.Header().Ttl -= min(seconds, record.Header().Ttl)
		}
	}
}

// Pack is the whole message, its ID 0.
func (r *Reply) Pack() ([]byte, error) {
	msg := *r.msg
	msg.Compress = true
	if msg.Rcode > 0xf { // there is no OPT record yet to take the upper bits
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

// checkName holds a name to its longest form; the library packs any, and then
// cannot read it.
func checkName(name string) error {
	_, err := dns.PackDomainName(name, make([]byte, maxNameBytes), 0, nil, false)
	return err
}

// ownSOA lets clients remember a negative answer that no zone gave. The root
// is an ancestor of every name, so no client can find it misplaced.
func ownSOA() *dns.SOA {
	seconds := uint32(negativeTTL / time.Second)
	return &dns.SOA{
		Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: seconds},
		Ns:  "localhost.", Mbox: "nobody.invalid.", Serial: 1, Refresh: 3600, Retry: 1200, Expire: 604800, Minttl: seconds,
	}
}

// String is for people: the question, the code, and the records.
func (r *Reply) String() string {
	text := []string{r.Name(), dns.Type(r.Type()).String(), dns.RcodeToString[r.RCode()]}
	for _, record := range r.msg.Answer {
		text = append(text, strings.ReplaceAll(record.String(), "\t", " "))
	}
	return strings.Join(text, "; ")
}
