package dnsmsg

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

func addQueries(f *testing.F) {
	for _, c := range hostile(f) {
		f.Add(c.packet)
	}
	f.Add(packed(f, "Api.Example.COM.", TypeA, nil))
	f.Add(packed(f, `a\.b\000\255.test.`, TypeHTTPS, func(m *dns.Msg) { m.SetEdns0(1232, true) }))
}

// FuzzParseQuery: an accepted query has one spelling, and both ways to answer it work.
func FuzzParseQuery(f *testing.F) {
	addQueries(f)
	f.Fuzz(func(t *testing.T, packet []byte) {
		q, err := ParseQuery(packet)
		if err != nil {
			var refused *QueryError
			if !errors.As(err, &refused) || refused.RCode == RCodeSuccess {
				t.Fatalf("%v", err)
			}
			if answer := refused.Answer(); answer != nil && new(dns.Msg).Unpack(answer) != nil {
				t.Fatalf("its answer %x cannot be read", answer)
			}
			return
		}
		msg := unpacked(t, packet) // the library must parse the same
		if len(msg.Question) != 1 || msg.Question[0] != (dns.Question{Name: q.Name, Qtype: q.Type, Qclass: dns.ClassINET}) || msg.Id != q.ID {
			t.Fatalf("%+v of %v", q, msg)
		}
		if msg := unpacked(t, Fail(q, RCodeRefused)); msg.Rcode != RCodeRefused || msg.Id != q.ID || msg.Question[0].Name != q.Name {
			t.Fatalf("%v", msg)
		}
		answer, err := Finish(must(NewReply(strings.ToUpper(q.Name), q.Type, RCodeNameError).Pack()), q, MaxUDPBytes)
		if err != nil || len(answer) > q.UDPSize {
			t.Fatalf("%d bytes, %v", len(answer), err)
		}
	})
}

// replies are messages that name servers send, good and bad.
func replies(f *testing.F) [][]byte {
	good := message(f, "a.test.", TypeHTTPS, 0, "a.test. 60 IN CNAME b.test.",
		`b.test. 60 IN HTTPS 1 . mandatory="ech" alpn="h2" ipv4hint="198.51.100.7,10.0.0.1" ech="AEX+DQA=" ipv6hint="fd00::1"`,
		"b.test. 60 IN RRSIG HTTPS"+signature, "--", "test. 50 IN SOA ns.test. who.test. 1 2 3 4 40", "--", "ns.test. 1 IN A 10.0.0.2")
	return [][]byte{
		good, good[:len(good)-3],
		message(f, "a.test.", TypeA, 0, "a.test. 60 IN CNAME b.test.", "b.test. 1 IN CNAME a.test.", "b.test. 60 IN A 10.0.0.1"),
		message(f, "a.test.", TypeAAAA, RCodeNameError, "--", "test. 50 IN SOA ns.test. who.test. 1 2 3 4 40"),
		message(f, "a.test.", dns.TypeNAPTR, 0, `a.test. 1 IN NAPTR 100 50 "s" "http" "" a.test.`),
		manyAddresses(f, "a.test", 40),
		shortSOA(f),
		packed(f, "a.test.", TypeA, func(m *dns.Msg) { m.Response = true; m.SetEdns0(1, true); m.Rcode = RCodeBadVersion }),
	}
}

// FuzzReply takes the broker's path: whatever a name server sends, the result can be parsed,
// has no address that was not kept and no ech, and is not changed by ParseReply.
func FuzzReply(f *testing.F) {
	for _, packet := range replies(f) {
		f.Add(packet, byte(1))
	}
	f.Fuzz(func(t *testing.T, packet []byte, odd byte) {
		reply, err := ParseReply(packet)
		if err != nil {
			return
		}
		keep := func(addr netip.Addr) bool { return addr.AsSlice()[3]%2 == odd%2 }
		reply.Age(3)
		reply.Filter(keep)
		reply.StripECH()
		for _, a := range reply.Addresses() {
			if !keep(a.Addr) {
				t.Fatalf("%s stayed", a.Addr)
			}
		}
		message, err := reply.Pack()
		if err != nil {
			return
		}
		again := parsed(t, message)
		if len(again.Filter(keep)) != 0 || again.StripECH() || again.Name() != reply.Name() {
			t.Fatalf("%v became %v", reply, again)
		}
		if second := must(again.Pack()); string(second) != string(message) {
			t.Fatalf("%x became %x", message, second)
		}
		_, _ = Question{ID: word(packet, 0), Name: reply.Name(), Type: reply.Type()}.Read(packet)
	})
}

// FuzzFinish: any message, any query, any limit.
func FuzzFinish(f *testing.F) {
	query := packed(f, "A.test.", TypeA, func(m *dns.Msg) { m.SetEdns0(1232, true) })
	for _, packet := range replies(f) {
		f.Add(packet, query, 512)
		f.Add(packet, query, MaxTCPBytes)
	}
	f.Fuzz(func(t *testing.T, message, query []byte, limit int) {
		q, err := ParseQuery(query)
		if err != nil {
			q = Query{Name: "a.test.", Type: TypeA, UDPSize: dns.MinMsgSize}
		}
		limit = min(max(limit, dns.MinMsgSize), MaxTCPBytes)
		packet, err := Finish(message, q, limit)
		if err != nil {
			return
		}
		if len(packet) > limit || (limit < MaxTCPBytes && len(packet) > q.UDPSize) {
			t.Fatalf("%d bytes for %d and %+v", len(packet), limit, q)
		}
		msg := unpacked(t, packet)
		if msg.Id != q.ID || !msg.Response || msg.Question[0].Name != q.Name || (msg.IsEdns0() != nil) != q.EDNS {
			t.Fatalf("%v for %+v", msg, q)
		}
	})
}
