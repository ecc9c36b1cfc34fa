package dnsmsg

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"pgregory.net/rapid"
)

func TestAReplyOfOurOwn(t *testing.T) {
	t.Parallel()
	addrs := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1"), netip.MustParseAddr("::ffff:10.0.0.1")}
	for _, c := range []struct {
		reply *Reply
		want  []string
	}{
		{NewReply("localhost", TypeA, RCodeSuccess).WithAddresses(time.Minute, addrs...), []string{"localhost. 60 IN A 127.0.0.1", "localhost. 60 IN A 10.0.0.1"}},
		{NewReply("localhost.", TypeAAAA, RCodeSuccess).WithAddresses(time.Minute, addrs...), []string{"localhost. 60 IN AAAA ::1"}},
		{NewReply("localhost", TypePTR, RCodeSuccess).WithAddresses(time.Minute, addrs...), nil},
		{NewReply("1.0.0.127.in-addr.arpa", TypePTR, RCodeSuccess).WithPTR(time.Hour, "localhost"), []string{"1.0.0.127.in-addr.arpa. 3600 IN PTR localhost."}},
		{NewReply("1.0.0.127.in-addr.arpa", TypeA, RCodeSuccess).WithPTR(time.Hour, "localhost"), nil},
	} {
		if got := text(t, c.reply); !slices.Equal(got, c.want) {
			t.Errorf("%v: %q, want %q", c.reply, got, c.want)
		}
	}
	for _, name := range []string{"no..name", strings.Repeat("abcdefg.", 40)} {
		if _, err := NewReply(name, TypeA, RCodeSuccess).Pack(); err == nil {
			t.Errorf("%q was packed", name)
		}
	}
}

func TestReverseNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"1.2.0.192.in-addr.arpa.": "192.0.2.1",
		"1.2.0.192.IN-ADDR.ARPA":  "192.0.2.1",
		"1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.D.0.1.0.0.2.ip6.arpa": "2001:db8::1",
		// parts of a network, other zones, and spellings that are none
		"2.0.192.in-addr.arpa": "", "in-addr.arpa": "", "x.2.0.192.in-addr.arpa": "", "01.2.0.192.in-addr.arpa": "",
		"256.2.0.192.in-addr.arpa": "", "0.1.2.0.192.in-addr.arpa": "", "0-127.2.0.192.in-addr.arpa": "", `1\.2.0.192.in-addr.arpa`: "",
		"8.b.d.0.1.0.0.2.ip6.arpa": "", "ip6.arpa": "", "a.test": "", "": "",
		"01.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa":  "",
		"g.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa": "",
	} {
		addr, ok := ReverseAddress(name)
		if ok != (want != "") || (ok && addr.String() != want) {
			t.Errorf("%q: %v, %v; want %q", name, addr, ok, want)
		}
	}
}

func TestReverseNamesAgreeWithTheLibrarys(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		bytes := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(r, "bytes")
		addr, _ := netip.AddrFromSlice(bytes)
		if rapid.Bool().Draw(r, "v4") {
			addr, _ = netip.AddrFromSlice(bytes[:4])
		}
		addr = addr.Unmap()
		name, err := dns.ReverseAddr(addr.String())
		if err != nil || ReverseName(addr) != name {
			r.Fatalf("%s, want %s (%v)", ReverseName(addr), name, err)
		}
		if back, ok := ReverseAddress(name); !ok || back != addr {
			r.Fatalf("%s is %s, not %s", name, back, addr)
		}
	})
}
