package dnsmsg

import (
	"encoding/binary"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// message returns a name server's message: the question, and records in the format of a zone
// file; those after "--" belong to the authority section, after a second one to the additional
// section.
func message(t testing.TB, name string, qtype uint16, rcode int, records ...string) []byte {
	t.Helper()
	msg := new(dns.Msg)
	msg.SetQuestion(name, qtype)
	msg.Id, msg.Response, msg.RecursionAvailable, msg.AuthenticatedData, msg.Rcode = 7, true, true, true, rcode
	sections := []*[]dns.RR{&msg.Answer, &msg.Ns, &msg.Extra}
	for _, text := range records {
		if text == "--" {
			sections = sections[1:]
			continue
		}
		record, err := dns.NewRR(text)
		if err != nil {
			t.Fatal(err)
		}
		*sections[0] = append(*sections[0], record)
	}
	packet, err := msg.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return packet
}

func parsed(t testing.TB, packet []byte) *Reply {
	t.Helper()
	reply, err := ParseReply(packet)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// text returns the answer's records after packing and parsing.
func text(t testing.TB, reply *Reply) []string {
	t.Helper()
	packet, err := reply.Pack()
	if err != nil {
		t.Fatal(err)
	}
	var records []string
	for _, record := range unpacked(t, packet).Answer {
		records = append(records, strings.ReplaceAll(record.String(), "\t", " "))
	}
	return records
}

func TestAReplyKeepsTheChainAndNothingElse(t *testing.T) {
	t.Parallel()
	packet := message(t, "www.a.test.", TypeA, RCodeSuccess,
		"edge.cdn.test. 60 IN A 198.51.100.7", // out of order
		"WWW.a.test. 300 IN CNAME cdn.test.",
		"cdn.test. 20 IN CNAME Edge.cdn.test.",
		"other.test. 300 IN A 10.0.0.1",            // no CNAME leads there
		"www.a.test. 300 IN TXT \"not asked for\"", // another type
		"edge.cdn.test. 60 HS A 10.0.0.3",          // another class
		"--", "a.test. 300 IN NS ns.a.test.", "--", "ns.a.test. 300 IN A 10.0.0.2")
	if msg := unpacked(t, packet); len(msg.Answer) != 6 || len(msg.Extra) != 1 || !msg.AuthenticatedData { // the control
		t.Fatalf("the server's message is not what it should be: %v", msg)
	}
	reply := parsed(t, packet)
	want := []string{"WWW.a.test. 300 IN CNAME cdn.test.", "cdn.test. 20 IN CNAME Edge.cdn.test.", "edge.cdn.test. 60 IN A 198.51.100.7"}
	if got := text(t, reply); !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	msg := unpacked(t, must(reply.Pack()))
	if msg.Id != 0 || msg.AuthenticatedData || len(msg.Ns)+len(msg.Extra) != 0 {
		t.Errorf("%v", msg)
	}
	addresses := []Address{{Addr: netip.MustParseAddr("198.51.100.7"), TTL: 20 * time.Second}}
	if got := reply.Addresses(); !reflect.DeepEqual(got, addresses) {
		t.Errorf("addresses %v", got)
	}
}

func TestAChainEndsSomewhere(t *testing.T) {
	t.Parallel()
	for name, records := range map[string][]string{
		"a loop":          {"a.test. 60 IN CNAME b.test.", "b.test. 60 IN CNAME a.test."},
		"onto itself":     {"a.test. 60 IN CNAME a.test."},
		"a dead end":      {"a.test. 60 IN CNAME b.test.", "c.test. 60 IN A 10.0.0.1"},
		"longer than any": {"a.test. 60 IN CNAME 1.test.", "1.test. 1 IN CNAME 2.test.", "2.test. 1 IN CNAME 3.test.", "3.test. 1 IN CNAME 4.test.", "4.test. 1 IN CNAME 5.test.", "5.test. 1 IN CNAME 6.test.", "6.test. 1 IN CNAME 7.test.", "7.test. 1 IN CNAME 8.test.", "8.test. 1 IN CNAME 9.test.", "9.test. 1 IN CNAME 10.test.", "10.test. 1 IN CNAME 11.test.", "11.test. 1 IN CNAME 12.test.", "12.test. 1 IN CNAME 13.test.", "13.test. 1 IN CNAME 14.test.", "14.test. 1 IN CNAME 15.test.", "15.test. 1 IN CNAME 16.test.", "16.test. 1 IN A 10.0.0.1"},
	} {
		reply := parsed(t, message(t, "a.test.", TypeA, RCodeSuccess, records...))
		if got := text(t, reply); !reply.Negative() || len(reply.Addresses()) != 0 || len(got) != min(len(records), maxChain) && name != "a dead end" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestHowLongAReplyHolds(t *testing.T) {
	t.Parallel()
	const soa = "test. 50 IN SOA ns.test. who.test. 1 2 3 4 40"
	for _, c := range []struct {
		name  string
		reply *Reply
		ttl   time.Duration
		known bool
	}{
		{"least of the chain", parsed(t, message(t, "a.test.", TypeA, 0, "a.test. 30 IN CNAME b.test.", "b.test. 90 IN A 10.0.0.1")), 30 * time.Second, true},
		{"SOA does not count", parsed(t, message(t, "a.test.", TypeA, 0, "a.test. 90 IN A 10.0.0.1", "--", soa)), 90 * time.Second, true},
		{"nothing of this type", parsed(t, message(t, "a.test.", TypeA, 0, "--", soa)), 40 * time.Second, true},
		{"no such name", parsed(t, message(t, "a.test.", TypeA, RCodeNameError, "--", soa)), 40 * time.Second, true},
		{"a CNAME to nothing", parsed(t, message(t, "a.test.", TypeA, 0, "a.test. 30 IN CNAME b.test.", "--", soa)), 30 * time.Second, true},
		{"negative without a SOA", parsed(t, message(t, "a.test.", TypeA, 0, "a.test. 30 IN CNAME b.test.")), 30 * time.Second, false},
		{"empty", parsed(t, message(t, "a.test.", TypeA, 0)), 0, false},
		{"our own", parsed(t, must(NewReply("a.test", TypeA, RCodeNameError).Pack())), negativeTTL, true},
	} {
		if ttl, known := c.reply.TTL(); ttl != c.ttl || known != c.known {
			t.Errorf("%s: %v, %v; want %v, %v", c.name, ttl, known, c.ttl, c.known)
		}
	}
	aged := parsed(t, message(t, "a.test.", TypeA, 0, "a.test. 30 IN CNAME b.test.", "b.test. 90 IN A 10.0.0.1"))
	aged.Age(-time.Second)
	aged.Age(40*time.Second + 500*time.Millisecond)
	if got := text(t, aged); got[0] != "a.test. 0 IN CNAME b.test." || got[1] != "b.test. 50 IN A 10.0.0.1" {
		t.Errorf("aged: %q", got)
	}
}

func TestANegativeAnswerCanBeRemembered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reply *Reply
		soa   bool
	}{
		{NewReply("a.test", TypeA, RCodeSuccess), true},
		{NewReply("a.test", TypeA, RCodeNameError), true},
		{NewReply("a.test", TypeA, RCodeServerFailure), false},
		{NewReply("a.test", TypeA, RCodeSuccess).WithAddresses(time.Minute, netip.MustParseAddr("10.0.0.1")), false},
		{NewReply("a.test", TypeA, RCodeSuccess).WithAddresses(time.Minute, netip.MustParseAddr("fd00::1")), true},
	} {
		msg := unpacked(t, must(c.reply.Pack()))
		if msg.Rcode != c.reply.RCode() || (len(msg.Ns) == 1) != c.soa {
			t.Errorf("%v: %v", c.reply, msg)
		}
	}
}

func TestWhatIsNoReply(t *testing.T) {
	t.Parallel()
	good := message(t, "a.test.", TypeA, 0, "a.test. 1 IN A 10.0.0.1")
	for name, packet := range map[string][]byte{
		"nothing":      nil,
		"cut off":      good[:len(good)-2],
		"no record":    good[:len(good)-22], // cut between two records: the library accepts it
		"a query":      packed(t, "a.test.", TypeA, nil),
		"NOTIFY":       packed(t, "a.test.", TypeA, func(m *dns.Msg) { m.Response = true; m.Opcode = dns.OpcodeNotify }),
		"class CH":     packed(t, "a.test.", TypeA, func(m *dns.Msg) { m.Response = true; m.Question[0].Qclass = dns.ClassCHAOS }),
		"no question":  packed(t, "a.test.", TypeA, func(m *dns.Msg) { m.Response = true; m.Question = nil }),
		"header alone": good[:headerBytes],
	} {
		if reply, err := ParseReply(packet); err == nil {
			t.Errorf("%s: %v", name, reply)
		}
	}
}

// withData answers a question for a.test's SOA with one record of a.test that has the given
// data.
func withData(t testing.TB, section int, rrtype uint16, data string) []byte {
	t.Helper()
	packet := message(t, "a.test.", dns.TypeSOA, RCodeSuccess)
	binary.BigEndian.PutUint16(packet[6+2*section:], 1)
	packet = append(packet, 0xc0, headerBytes) // the question's name
	packet = binary.BigEndian.AppendUint16(packet, rrtype)
	packet = binary.BigEndian.AppendUint16(packet, dns.ClassINET)
	packet = binary.BigEndian.AppendUint32(packet, 60)
	packet = binary.BigEndian.AppendUint16(packet, uint16(len(data)))
	return append(packet, data...)
}

const (
	answerSection = iota
	authoritySection
	additionalSection
)

// shortSOA has a SOA with the name of the server and nothing after it.
func shortSOA(t testing.TB) []byte {
	return withData(t, authoritySection, dns.TypeSOA, "\x02ns\x00")
}

// TestARecordWithShortData: the library parses a SOA with one name, and packs one that cannot
// be parsed.
func TestARecordWithShortData(t *testing.T) {
	const whole = "\x02ns\x00\x03who\x00" + "\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00\x04\x00\x00\x00\x05"
	if reply := parsed(t, withData(t, authoritySection, dns.TypeSOA, whole)); len(reply.msg.Ns) != 1 { // the control
		t.Fatalf("%v", reply)
	}
	q := Query{Name: "a.test.", Type: dns.TypeSOA, UDPSize: dns.MinMsgSize}
	for name, packet := range map[string][]byte{
		"one name":            shortSOA(t),
		"no data":             withData(t, authoritySection, dns.TypeSOA, ""),
		"one name, an answer": withData(t, answerSection, dns.TypeSOA, "\x02ns\x00"),
	} {
		unpacked(t, packet) // the library accepts it
		if reply, err := ParseReply(packet); err == nil {
			t.Errorf("%s: %v", name, reply)
		}
		if answer, err := Finish(packet, q, MaxUDPBytes); err == nil {
			t.Errorf("%s: finished as %x", name, answer)
		}
	}
	// A record that is not passed on does no harm.
	parsed(t, withData(t, authoritySection, dns.TypeNS, ""))
	parsed(t, withData(t, additionalSection, dns.TypeSOA, "\x02ns\x00"))
}

// TestAReplyThatFitsNoMessage: it was small because it was compressed.
func TestAReplyThatFitsNoMessage(t *testing.T) {
	t.Parallel()
	reply := NewReply("a.test", dns.TypeTXT, RCodeSuccess)
	for range 300 {
		reply.msg.Answer = append(reply.msg.Answer, &dns.TXT{Hdr: reply.header(0), Txt: []string{strings.Repeat("x", 250)}})
	}
	if packet, err := reply.Pack(); err == nil {
		t.Errorf("%d bytes", len(packet))
	}
	over := NewReply("a.test", TypeA, RCodeBadVersion) // needs an OPT record, which comes later
	if msg := unpacked(t, must(over.Pack())); msg.Rcode != RCodeServerFailure {
		t.Errorf("%v", msg)
	}
}
