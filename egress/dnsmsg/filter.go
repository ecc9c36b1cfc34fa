package dnsmsg

import (
	"net"
	"net/netip"
	"slices"

	"github.com/miekg/dns"
)

// Filter removes every address for which keep returns false, and returns these addresses. A
// record without any address left is removed. CNAMEs stay, so that the answer becomes "no
// record of this type". The hints of HTTPS and SVCB records are filtered too, because a
// client may connect to them without a further query (RFC 9460).
func (r *Reply) Filter(keep func(netip.Addr) bool) (removed []netip.Addr) {
	verdicts := map[netip.Addr]bool{} // keep is called once for each address
	kept := func(addr netip.Addr) bool {
		if verdict, known := verdicts[addr]; known {
			return verdict
		}
		verdicts[addr] = keep(addr)
		if !verdicts[addr] {
			removed = append(removed, addr)
		}
		return verdicts[addr]
	}
	r.edit(func(record dns.RR) change {
		switch record := record.(type) {
		case *dns.A, *dns.AAAA:
			// A record without an address (RFC 2136 uses them) is of no use.
			if addrs := addressesOf(record); len(addrs) == 1 && kept(addrs[0]) {
				return unchanged
			}
			return dropped
		case *dns.HTTPS:
			return filterHints(&record.SVCB, kept)
		case *dns.SVCB:
			return filterHints(record, kept)
		}
		return unchanged
	})
	return removed
}

// StripECH removes the keys for an encrypted hello from HTTPS and SVCB records, and reports
// whether there were any. The gate must be able to read the name that a client shows.
func (r *Reply) StripECH() bool {
	found := false
	r.edit(func(record dns.RR) change {
		var svcb *dns.SVCB
		switch record := record.(type) {
		case *dns.HTTPS:
			svcb = &record.SVCB
		case *dns.SVCB:
			svcb = record
		default:
			return unchanged
		}
		result := withoutKeys(svcb, func(value dns.SVCBKeyValue) bool { return value.Key() == dns.SVCB_ECHCONFIG })
		found = found || result != unchanged
		return result
	})
	return found
}

// change is the effect of an edit on a record.
type change int

const (
	unchanged change = iota
	changed
	dropped
)

// edit applies a change to every record of the answer, and removes signatures that it
// invalidates: a signature covers a whole record set (RFC 4035 section 5.3).
func (r *Reply) edit(apply func(dns.RR) change) {
	type set struct {
		owner string
		kind  uint16
	}
	broken := map[set]bool{}
	r.msg.Answer = slices.DeleteFunc(r.msg.Answer, func(record dns.RR) bool {
		result := apply(record)
		if result != unchanged {
			broken[set{dns.CanonicalName(record.Header().Name), record.Header().Rrtype}] = true
		}
		return result == dropped
	})
	r.msg.Answer = slices.DeleteFunc(r.msg.Answer, func(record dns.RR) bool {
		signature, ok := record.(*dns.RRSIG)
		return ok && broken[set{dns.CanonicalName(signature.Hdr.Name), signature.TypeCovered}]
	})
}

// filterHints removes a record's address hints for which keep returns false.
func filterHints(svcb *dns.SVCB, keep func(netip.Addr) bool) change {
	gone := func(ip net.IP) bool {
		addr, ok := addressOf(ip)
		return !ok || !keep(addr)
	}
	shortened := false
	result := withoutKeys(svcb, func(value dns.SVCBKeyValue) bool {
		hints := hintsOf(value)
		if hints == nil {
			return false
		}
		before := len(*hints)
		*hints = slices.DeleteFunc(*hints, gone)
		shortened = shortened || len(*hints) < before
		return len(*hints) == 0 // RFC 9460 section 7.3: an empty list is malformed
	})
	if result == unchanged && shortened {
		return changed
	}
	return result
}

// withoutKeys removes parameters from a record. A record that lists one of them as
// mandatory cannot be used without it (RFC 9460 section 8) and is dropped.
func withoutKeys(svcb *dns.SVCB, gone func(dns.SVCBKeyValue) bool) change {
	before := len(svcb.Value)
	var keys []dns.SVCBKey
	svcb.Value = slices.DeleteFunc(svcb.Value, func(value dns.SVCBKeyValue) bool {
		out := gone(value)
		if out {
			keys = append(keys, value.Key())
		}
		return out
	})
	for _, value := range svcb.Value {
		mandatory, ok := value.(*dns.SVCBMandatory)
		if ok && slices.ContainsFunc(keys, func(key dns.SVCBKey) bool { return slices.Contains(mandatory.Code, key) }) {
			return dropped
		}
	}
	if len(svcb.Value) < before {
		return changed
	}
	return unchanged
}

// addressesOf returns all addresses in a record.
func addressesOf(record dns.RR) []netip.Addr {
	var ips []net.IP
	switch record := record.(type) {
	case *dns.A:
		// In four bytes: netip would take the long form of an IPv4 address for an IPv6 one.
		ips = []net.IP{record.A.To4()}
	case *dns.AAAA:
		ips = []net.IP{record.AAAA}
	case *dns.HTTPS:
		ips = allHints(&record.SVCB)
	case *dns.SVCB:
		ips = allHints(record)
	}
	var addrs []netip.Addr
	for _, ip := range ips {
		if addr, ok := addressOf(ip); ok {
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

// addressOf does not unmap an IPv4-mapped address: the rules decide what it reaches.
func addressOf(ip net.IP) (netip.Addr, bool) { return netip.AddrFromSlice(ip) }

func allHints(svcb *dns.SVCB) []net.IP {
	var ips []net.IP
	for _, value := range svcb.Value {
		if hints := hintsOf(value); hints != nil {
			ips = append(ips, *hints...)
		}
	}
	return ips
}

// hintsOf returns the list itself, so that filterHints can shorten it in place.
func hintsOf(value dns.SVCBKeyValue) *[]net.IP {
	switch value := value.(type) {
	case *dns.SVCBIPv4Hint:
		return &value.Hint
	case *dns.SVCBIPv6Hint:
		return &value.Hint
	}
	return nil
}
