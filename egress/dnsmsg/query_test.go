package dnsmsg

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// packed is a query as a client makes it, with changes.
func packed(t testing.TB, name string, qtype uint16, change func(*dns.Msg)) []byte {
	t.Helper()
	msg := new(dns.Msg)
	msg.SetQuestion(name, qtype)
	msg.Id = 0x1234
	if change != nil {
		change(msg)
	}
	packet, err := msg.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return packet
}

func mustParse(t testing.TB, packet []byte) Query {
	t.Helper()
	q, err := ParseQuery(packet)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestAQueryIsRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		packet []byte
		want   Query
	}{
		{"plain", packed(t, "Api.Example.COM.", TypeA, nil),
			Query{ID: 0x1234, Name: "Api.Example.COM.", Type: TypeA, RecursionDesired: true, UDPSize: 512}},
		{"edns", packed(t, "a.test.", TypeHTTPS, func(m *dns.Msg) { m.SetEdns0(1232, true) }),
			Query{ID: 0x1234, Name: "a.test.", Type: TypeHTTPS, RecursionDesired: true, EDNS: true, DNSSECOK: true, UDPSize: 1232}},
		{"tiny edns size", packed(t, "a.test.", TypeA, func(m *dns.Msg) { m.SetEdns0(40, false) }),
			Query{ID: 0x1234, Name: "a.test.", Type: TypeA, RecursionDesired: true, EDNS: true, UDPSize: 512}},
		{"a cookie, as dig sends it", packed(t, "a.test.", TypeA, func(m *dns.Msg) {
			m.SetEdns0(1232, false)
			m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "24a5ac1223344556"}}
		}), Query{ID: 0x1234, Name: "a.test.", Type: TypeA, RecursionDesired: true, EDNS: true, UDPSize: 1232}},
		{"ad and cd", packed(t, ".", dns.TypeNS, func(m *dns.Msg) { m.AuthenticatedData, m.CheckingDisabled = true, true }),
			Query{ID: 0x1234, Name: ".", Type: dns.TypeNS, RecursionDesired: true, CheckingDisabled: true, UDPSize: 512}},
		{"bytes of every kind", packed(t, `a\.b\000\255.test.`, TypeA, nil),
			Query{ID: 0x1234, Name: `a\.b\000\255.test.`, Type: TypeA, RecursionDesired: true, UDPSize: 512}},
	} {
		if got, err := ParseQuery(c.packet); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v\nwant %+v", c.name, got, err, c.want)
		}
	}
}

// hostile are packets that no stub resolver sends, with the response code for each; -1 is no
// response.
func hostile(t testing.TB) []struct {
	name   string
	packet []byte
	rcode  int
} {
	plain := packed(t, "a.test.", TypeA, nil)
	with := func(change func(p []byte) []byte) []byte { return change(slices.Clone(plain)) }
	address := &dns.A{Hdr: dns.RR_Header{Name: "a.test.", Rrtype: TypeA, Class: dns.ClassINET}, A: []byte{10, 0, 0, 1}}
	return []struct {
		name   string
		packet []byte
		rcode  int
	}{
		{"empty", nil, -1},
		{"less than a header", plain[:11], -1},
		{"an answer", packed(t, "a.test.", TypeA, func(m *dns.Msg) { m.Response = true }), -1},
		{"a header alone", plain[:12], RCodeFormatError},
		{"half a name", plain[:15], RCodeFormatError},
		{"half a question", plain[:len(plain)-1], RCodeFormatError},
		{"bytes behind", append(slices.Clone(plain), 0), RCodeFormatError},
		{"longer than any query", append(slices.Clone(plain), make([]byte, MaxQueryBytes)...), RCodeFormatError},
		{"two questions", packed(t, "a.test.", TypeA, func(m *dns.Msg) { m.Question = append(m.Question, m.Question[0]) }), RCodeFormatError},
		{"no question", packed(t, "a.test.", TypeA, func(m *dns.Msg) { m.Question = nil }), RCodeFormatError},
		{"counts that lie", with(func(p []byte) []byte { binary.BigEndian.PutUint16(p[10:], 65535); return p }), RCodeFormatError},
		{"an additional that is not there", with(func(p []byte) []byte { p[11] = 1; return p }), RCodeFormatError},
		{"an answer section", packed(t, "a.test.", TypeA, func(m *dns.Msg) { m.Answer = []dns.RR{address} }), RCodeFormatError},
		{"an authority section", packed(t, "a.test.", TypeA, func(m *dns.Msg) { m.Ns = []dns.RR{address} }), RCodeFormatError},
		{"an additional that is no OPT", packed(t, "a.test.", TypeA, func(m *dns.Msg) { m.Extra = []dns.RR{address} }), RCodeFormatError},
		{"two OPT", packed(t, "a.test.", TypeA, func(m *dns.Msg) { m.SetEdns0(1232, false); m.SetEdns0(1232, false) }), RCodeFormatError},
		{"an OPT of a name", packed(t, "a.test.", TypeA, func(m *dns.Msg) { m.SetEdns0(1232, false); m.Extra[0].Header().Name = "b." }), RCodeFormatError},
		{"bytes behind the OPT", append(packed(t, "a.test.", TypeA, func(m *dns.Msg) { m.SetEdns0(1232, false) }), 0), RCodeFormatError},
		{"EDNS version 1", packed(t, "a.test.", TypeA, func(m *dns.Msg) { m.SetEdns0(1232, false); m.IsEdns0().SetVersion(1) }), RCodeBadVersion},
		{"a name that points to itself", append(slices.Clone(plain[:12]), 0xc0, 12, 0, 1, 0, 1), RCodeFormatError},
		{"a name that points to the header", append(slices.Clone(plain[:12]), 0xc0, 4, 0, 1, 0, 1), RCodeFormatError},
		{"a label of a reserved kind", append(slices.Clone(plain[:12]), 0x41, 'a', 0, 0, 1, 0, 1), RCodeFormatError},
		{"a name of 257 bytes", append(append(slices.Clone(plain[:12]), strings.Repeat("\x3f"+strings.Repeat("x", 63), 4)...), 0, 0, 1, 0, 1), RCodeFormatError},
		{"the TC bit", packed(t, "a.test.", TypeA, func(m *dns.Msg) { m.Truncated = true }), RCodeFormatError},
		{"a response code", packed(t, "a.test.", TypeA, func(m *dns.Msg) { m.Rcode = 5 }), RCodeFormatError},
		{"UPDATE", packed(t, "a.test.", dns.TypeSOA, func(m *dns.Msg) { m.Opcode = dns.OpcodeUpdate }), RCodeNotImplemented},
		{"NOTIFY", packed(t, "a.test.", dns.TypeSOA, func(m *dns.Msg) { m.Opcode = dns.OpcodeNotify }), RCodeNotImplemented},
		{"class CH", packed(t, "version.bind.", dns.TypeTXT, func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS }), RCodeRefused},
		{"class ANY", packed(t, "a.test.", TypeA, func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassANY }), RCodeRefused},
		{"AXFR", packed(t, "a.test.", dns.TypeAXFR, nil), RCodeNotImplemented},
		{"ANY", packed(t, "a.test.", dns.TypeANY, nil), RCodeNotImplemented},
		{"type OPT", packed(t, "a.test.", dns.TypeOPT, nil), RCodeNotImplemented},
		{"type 0", packed(t, "a.test.", 0, nil), RCodeNotImplemented},
	}
}

func TestWhatIsNoQueryIsToldSo(t *testing.T) {
	t.Parallel()
	for _, c := range hostile(t) {
		q, err := ParseQuery(c.packet)
		var refused *QueryError
		if !errors.As(err, &refused) || q != (Query{}) {
			t.Errorf("%s: %+v, %v", c.name, q, err)
			continue
		}
		answer := refused.Answer()
		if c.rcode == -1 {
			if answer != nil {
				t.Errorf("%s: answered", c.name)
			}
			continue
		}
		msg := new(dns.Msg)
		if err := msg.Unpack(answer); err != nil || msg.Rcode != c.rcode || msg.Id != 0x1234 || !msg.Response || msg.Opcode != int(c.packet[2]>>3&0xf) {
			t.Errorf("%s: %v, %v; want code %d", c.name, msg, err, c.rcode)
		}
	}
}

// TestTheLibraryAloneWouldTakeThem is the control: without clove's checks, most of these are
// accepted.
func TestTheLibraryAloneWouldTakeThem(t *testing.T) {
	t.Parallel()
	taken := 0
	for _, c := range hostile(t) {
		if new(dns.Msg).Unpack(c.packet) == nil {
			taken++
		}
	}
	if taken < 15 {
		t.Errorf("only %d are messages at all: the table tests the library", taken)
	}
}
