package dnsmsg

import (
	"net"
	"net/netip"
	"slices"

	"github.com/miekg/dns"
)

// Filter takes out every address that is not to be kept, and returns those. A
// record that has none left goes as a whole; CNAMEs stay, so that the answer
// becomes "nothing of this type".
func (r *Reply) Filter(keep func(netip.Addr) bool) (removed []netip.Addr) {
	verdicts := map[netip.Addr]bool{} // keep is asked once for each
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
			// One without an address (RFC 2136 has such) leads nowhere.
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

// StripECH takes the key for an encrypted hello out of HTTPS and SVCB records,
// and says whether there was one: the gate must be able to read the name that a
// client shows.
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

// change is what an edit did to a record.
type change int

const (
	unchanged change = iota
	changed
	dropped
)

// edit applies one change to every record of the answer, and takes away the
// signatures that no longer hold (RFC 4035 section 5.3: they cover a whole set).
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

// filterHints keeps what keep says of a record's address hints.
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

// withoutKeys takes values out of a record. One that calls such a key mandatory
// cannot be used without it (RFC 9460 section 8), so it goes as a whole.
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

// addressesOf are all that a record holds.
func addressesOf(record dns.RR) []netip.Addr {
	var ips []net.IP
	switch record := record.(type) {
	case *dns.A:
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

// addressOf keeps an IPv4-mapped address what it is: what it reaches is for the
// rules to say.
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

func hintsOf(value dns.SVCBKeyValue) *[]net.IP {
	switch value := value.(type) {
	case *dns.SVCBIPv4Hint:
		return &value.Hint
	case *dns.SVCBIPv6Hint:
		return &value.Hint
	}
	return nil
}
