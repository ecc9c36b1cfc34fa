package dnsmsg

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"pgregory.net/rapid"
)

func isPublic(addr netip.Addr) bool { return !addr.Unmap().IsPrivate() && !addr.Unmap().IsLoopback() }

const signature = " 8 2 300 20300101000000 20200101000000 1 test. c2ln" // what follows the covered type

func TestAddressesThatAreNotKeptLeaveTheAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		qtype   uint16
		records []string
		want    []string // nil: unchanged
		removed []string
	}{
		{"all kept", TypeA, []string{"a.test. 60 IN A 198.51.100.7", "a.test. 60 IN RRSIG A" + signature}, nil, nil},
		{"one of two, and the signature", TypeA,
			[]string{"a.test. 60 IN A 198.51.100.7", "a.test. 60 IN A 10.0.0.1", "a.test. 60 IN RRSIG A" + signature},
			[]string{"a.test. 60 IN A 198.51.100.7"}, []string{"10.0.0.1"}},
		{"the CNAME stays, and its signature", TypeA,
			[]string{"a.test. 60 IN CNAME b.test.", "a.test. 60 IN RRSIG CNAME" + signature, "b.test. 60 IN A 127.0.0.1", "b.test. 60 IN A 127.0.0.1", "b.test. 60 IN RRSIG A" + signature},
			[]string{"a.test. 60 IN CNAME b.test.", "a.test. 60 IN RRSIG CNAME" + signature}, []string{"127.0.0.1"}},
		{"AAAA", TypeAAAA, []string{"a.test. 60 IN AAAA fd00::1", "a.test. 60 IN AAAA 2001:db8::1"},
			[]string{"a.test. 60 IN AAAA 2001:db8::1"}, []string{"fd00::1"}},
		{"hints of HTTPS", TypeHTTPS,
			[]string{`a.test. 60 IN HTTPS 1 . alpn="h2" ipv4hint="198.51.100.7,10.0.0.1" ipv6hint="fd00::1"`},
			[]string{`a.test. 60 IN HTTPS 1 . alpn="h2" ipv4hint="198.51.100.7"`}, []string{"10.0.0.1", "fd00::1"}},
		{"hints of SVCB", TypeSVCB,
			[]string{`a.test. 60 IN SVCB 1 b.test. ipv6hint="2001:db8::1,fd00::1"`},
			[]string{`a.test. 60 IN SVCB 1 b.test. ipv6hint="2001:db8::1"`}, []string{"fd00::1"}},
		{"a hint that is mandatory", TypeHTTPS,
			[]string{`a.test. 60 IN HTTPS 1 . mandatory="ipv4hint" ipv4hint="10.0.0.1"`, `a.test. 60 IN HTTPS 2 . alpn="h2"`, "a.test. 60 IN RRSIG HTTPS" + signature},
			[]string{`a.test. 60 IN HTTPS 2 . alpn="h2"`}, []string{"10.0.0.1"}},
		{"other types", dns.TypeTXT, []string{`a.test. 60 IN TXT "10.0.0.1"`}, nil, nil},
	} {
		reply := parsed(t, message(t, "a.test.", c.qtype, 0, c.records...))
		before := text(t, reply)
		removed := reply.Filter(isPublic)
		var names []string
		for _, addr := range removed {
			names = append(names, addr.String())
		}
		want := c.want
		if want == nil {
			want = before
		}
		if got := text(t, reply); !reflect.DeepEqual(got, want) || !reflect.DeepEqual(names, c.removed) {
			t.Errorf("%s: %q, removed %v", c.name, got, names)
		}
		for _, addr := range names { // the control: it was there
			if !strings.Contains(strings.Join(before, " "), addr) {
				t.Errorf("%s: %s was never in %q", c.name, addr, before)
			}
		}
	}
}

// TestARecordWithoutAnAddressGoes: RFC 2136 has such records, and the library accepts them.
func TestARecordWithoutAnAddressGoes(t *testing.T) {
	t.Parallel()
	msg := unpacked(t, message(t, "a.test.", TypeA, 0))
	msg.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: "a.test.", Rrtype: TypeA, Class: dns.ClassINET, Ttl: 60}}}
	reply := parsed(t, must(msg.Pack()))
	if len(text(t, reply)) != 1 || reply.Addresses() != nil { // the control
		t.Fatalf("%v", reply)
	}
	if reply.Filter(isPublic); len(text(t, reply)) != 0 {
		t.Errorf("%v", reply)
	}
}

func TestAMappedAddressIsShownAsItIs(t *testing.T) {
	t.Parallel()
	msg := unpacked(t, message(t, "a.test.", TypeAAAA, 0))
	mapped := netip.MustParseAddr("::ffff:10.0.0.1")
	msg.Answer = []dns.RR{&dns.AAAA{Hdr: dns.RR_Header{Name: "a.test.", Rrtype: TypeAAAA, Class: dns.ClassINET}, AAAA: mapped.AsSlice()}}
	reply := parsed(t, must(msg.Pack()))
	if got := reply.Addresses(); len(got) != 1 || got[0].Addr != mapped {
		t.Errorf("%v", got)
	}
	if removed := reply.Filter(isPublic); !slices.Equal(removed, []netip.Addr{mapped}) {
		t.Errorf("removed %v", removed)
	}
}

func TestNoKeyForAnEncryptedHello(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		qtype   uint16
		records []string
		want    []string
		found   bool
	}{
		{"HTTPS", TypeHTTPS, []string{`a.test. 60 IN HTTPS 1 . alpn="h2" ech="AEX+DQA="`, "a.test. 60 IN RRSIG HTTPS" + signature}, []string{`a.test. 60 IN HTTPS 1 . alpn="h2"`}, true},
		{"SVCB", TypeSVCB, []string{`a.test. 60 IN SVCB 1 . ech="AEX+DQA="`}, []string{`a.test. 60 IN SVCB 1 .`}, true},
		{"mandatory", TypeHTTPS, []string{`a.test. 60 IN HTTPS 1 . mandatory="ech" ech="AEX+DQA="`}, nil, true},
		{"behind a CNAME", TypeHTTPS, []string{"a.test. 60 IN CNAME b.test.", `b.test. 60 IN HTTPS 1 . ech="AEX+DQA="`}, []string{"a.test. 60 IN CNAME b.test.", `b.test. 60 IN HTTPS 1 .`}, true},
		{"none", TypeHTTPS, []string{`a.test. 60 IN HTTPS 1 . alpn="h2"`, "a.test. 60 IN RRSIG HTTPS" + signature}, []string{`a.test. 60 IN HTTPS 1 . alpn="h2"`, "a.test. 60 IN RRSIG HTTPS" + signature}, false},
		{"another type", TypeA, []string{"a.test. 60 IN A 10.0.0.1"}, []string{"a.test. 60 IN A 10.0.0.1"}, false},
	} {
		reply := parsed(t, message(t, "a.test.", c.qtype, 0, c.records...))
		if strings.Contains(strings.Join(text(t, reply), " "), "ech=") != c.found { // the control
			t.Fatalf("%s: %v", c.name, reply)
		}
		if found := reply.StripECH(); found != c.found {
			t.Errorf("%s: found %v", c.name, found)
		}
		if got := text(t, reply); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

func TestAfterTheFilterOnlyKeptAddressesAreThere(t *testing.T) {
	t.Parallel()
	address := rapid.Custom(func(r *rapid.T) netip.Addr {
		if rapid.Bool().Draw(r, "v4") {
			return netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(r, "bytes")))
		}
		return netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(r, "bytes")))
	})
	rapid.Check(t, func(r *rapid.T) {
		qtype := rapid.SampledFrom([]uint16{TypeA, TypeAAAA}).Draw(r, "type")
		reply := NewReply("a.test", qtype, RCodeSuccess).WithAddresses(0, rapid.SliceOf(address).Draw(r, "addresses")...)
		all := reply.Addresses()
		keep := func(addr netip.Addr) bool { return addr.AsSlice()[3]%2 == 0 }
		removed := reply.Filter(keep)
		for _, a := range reply.Addresses() {
			if !keep(a.Addr) {
				r.Fatalf("%s stayed", a.Addr)
			}
		}
		if len(reply.Addresses())+len(removed) != len(all) {
			r.Fatalf("%d and %d are not %d", len(reply.Addresses()), len(removed), len(all))
		}
	})
}
