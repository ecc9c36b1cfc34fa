package dnsmsg

import (
	"net/netip"
	"time"

	"github.com/miekg/dns"
)

// WithAddresses adds a record for each address of the queried type, and returns r. A name
// that has addresses of the other family only gets an empty answer, not NXDOMAIN.
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

// WithPTR adds the name of an address if the query is for one, and returns r.
func (r *Reply) WithPTR(ttl time.Duration, name string) *Reply {
	if r.Type() == TypePTR {
		r.msg.Answer = append(r.msg.Answer, &dns.PTR{Hdr: r.header(ttl), Ptr: dns.Fqdn(name)})
	}
	return r
}

func (r *Reply) header(ttl time.Duration) dns.RR_Header {
	return dns.RR_Header{Name: r.Name(), Rrtype: r.Type(), Class: dns.ClassINET, Ttl: uint32(ttl / time.Second)}
}
