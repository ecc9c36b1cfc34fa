package dnsmsg

import (
	"net/netip"
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
