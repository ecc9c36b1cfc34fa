package dnsmsg

import (
	"encoding/hex"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// WithAddresses adds a record for each address of the type that was asked for,
// and returns r. A name with addresses of the other family only thus has
// nothing of this type, rather than no existence.
func (r *Reply) WithAddresses(ttl time.Duration, addrs ...netip.Addr) *Reply {
	header := r.header(ttl)
	for _, addr := range addrs {
		addr = addr.Unmap()
		switch {
		case r.Type() == TypeA && addr.Is4():
			r.msg.Answer = append(r.msg.Answer, &dns.A{Hdr: header, A: addr.AsSlice()})
		case r.Type() == TypeAAAA && addr.Is6():
			r.msg.Answer = append(r.msg.Answer, &dns.AAAA{Hdr: header, AAAA: addr.AsSlice()})
		}
	}
	return r
}

// WithPTR adds the name that an address has, if that was asked for, and
// returns r.
func (r *Reply) WithPTR(ttl time.Duration, name string) *Reply {
	if r.Type() == TypePTR {
		r.msg.Answer = append(r.msg.Answer, &dns.PTR{Hdr: r.header(ttl), Ptr: dns.Fqdn(name)})
	}
	return r
}

func (r *Reply) header(ttl time.Duration) dns.RR_Header {
	return dns.RR_Header{Name: r.Name(), Rrtype: r.Type(), Class: dns.ClassINET, Ttl: uint32(ttl / time.Second)}
}

// ReverseAddress is the address that a name below in-addr.arpa or ip6.arpa asks
// about (RFC 1035 section 3.5, RFC 3596 section 2.5), spelled out in full.
func ReverseAddress(name string) (netip.Addr, bool) {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if labels, ok := strings.CutSuffix(name, ".in-addr.arpa"); ok {
		return reverse4(labels)
	}
	if labels, ok := strings.CutSuffix(name, ".ip6.arpa"); ok {
		return reverse6(labels)
	}
	return netip.Addr{}, false
}

func reverse4(text string) (netip.Addr, bool) {
	labels := strings.Split(text, ".")
	slices.Reverse(labels)
	addr, err := netip.ParseAddr(strings.Join(labels, "."))
	return addr, err == nil && addr.Is4()
}

func reverse6(text string) (netip.Addr, bool) {
	labels := strings.Split(text, ".")
	slices.Reverse(labels)
	for _, label := range labels {
		if len(label) != 1 {
			return netip.Addr{}, false
		}
	}
	bytes, err := hex.DecodeString(strings.Join(labels, ""))
	if err != nil || len(bytes) != 16 {
		return netip.Addr{}, false
	}
	return netip.AddrFromSlice(bytes)
}

// ReverseName is the name to ask for an address's names.
func ReverseName(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	if addr.Is4() {
		b := addr.As4()
		return strconv.Itoa(int(b[3])) + "." + strconv.Itoa(int(b[2])) + "." + strconv.Itoa(int(b[1])) + "." + strconv.Itoa(int(b[0])) + ".in-addr.arpa."
	}
	name, _ := dns.ReverseAddr(addr.String())
	return name
}
