package egress

import (
	"net/netip"
	"strconv"
	"strings"
)

// Reverse returns the address that a name of the reverse tree stands for (RFC 1035 section
// 3.5, RFC 3596 section 2.5). reverse is true for every name of that tree; addr is invalid
// if the name is not a full address.
func (n Name) Reverse() (addr netip.Addr, reverse bool) {
	text := "." + string(n)
	if labels, found := strings.CutSuffix(text, ".in-addr.arpa"); found {
		return reverse4(strings.Split(labels, ".")), true
	}
	if labels, found := strings.CutSuffix(text, ".ip6.arpa"); found {
		return reverse6(strings.Split(labels, ".")), true
	}
	return netip.Addr{}, false
}

// reverse4 and reverse6 get an empty first label, because Reverse prepends a dot.
func reverse4(labels []string) netip.Addr {
	var b [4]byte
	if len(labels) != 1+len(b) {
		return netip.Addr{}
	}
	for i, label := range labels[1:] {
		value, err := strconv.ParseUint(label, 10, 8)
		// Leading zeros are rejected, so that one address has one name.
		if err != nil || strconv.FormatUint(value, 10) != label {
			return netip.Addr{}
		}
		b[len(b)-1-i] = byte(value)
	}
	return netip.AddrFrom4(b)
}

// reverse6 reads one hexadecimal digit a label, the lowest first.
func reverse6(labels []string) netip.Addr {
	var b [16]byte
	if len(labels) != 1+2*len(b) {
		return netip.Addr{}
	}
	for i, label := range labels[1:] {
		value, err := strconv.ParseUint(label, 16, 4)
		if err != nil || len(label) != 1 {
			return netip.Addr{}
		}
		b[len(b)-1-i/2] |= byte(value) << (4 * (i % 2))
	}
	return netip.AddrFrom16(b)
}
