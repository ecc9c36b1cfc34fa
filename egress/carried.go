package egress

import (
	"encoding/binary"
	"net/netip"
)

// The forms that carry an IPv4 address in fixed bits. Network-specific NAT64
// prefixes (RFC 6052 section 2.2) look like any address and cannot be known.
var (
	nat64       = netip.MustParsePrefix("64:ff9b::/96")
	nat64Local  = netip.MustParsePrefix("64:ff9b:1::/48")
	sixToFour   = netip.MustParsePrefix("2002::/16")
	teredo      = netip.MustParsePrefix("2001::/32")
	compatible  = netip.MustParsePrefix("::/96")
	translated  = netip.MustParsePrefix("::ffff:0:0:0/96")
	unspecified = netip.MustParsePrefix("::/127") // :: and ::1 carry nothing
)

// carried returns the IPv4 address that an IPv6 address leads to. class, where
// it is set, overrules that address's own class. ok is false when addr carries
// none.
func carried(addr netip.Addr) (inner netip.Addr, class Class, ok bool) {
	b := addr.As16()
	switch {
	case unspecified.Contains(addr):
		return netip.Addr{}, "", false
	case nat64.Contains(addr): // RFC 6052
		return last4(b), "", true
	case nat64Local.Contains(addr):
		return localNAT64(b)
	case sixToFour.Contains(addr): // RFC 3056
		return netip.AddrFrom4([4]byte(b[2:6])), "", true
	case teredo.Contains(addr):
		return throughTeredo(b), "", true
	case compatible.Contains(addr), translated.Contains(addr): // RFC 4291 2.5.5.1, RFC 2765 2.1
		return unlessPublic(last4(b), ClassReserved)
	case binary.BigEndian.Uint32(b[8:12])&^0x03000000 == 0x00005efe: // RFC 5214 6.1
		return unlessPublic(last4(b), blockOf(addr).class)
	}
	return netip.Addr{}, "", false
}

// last4 is where most forms keep it.
func last4(b [16]byte) netip.Addr { return netip.AddrFrom4([4]byte(b[12:])) }

// unlessPublic is for forms that nobody routes by the IPv4 address any more:
// what it says counts only where it makes the address worse.
func unlessPublic(inner netip.Addr, otherwise Class) (netip.Addr, Class, bool) {
	if class := blockOf(inner).class; class != ClassPublic {
		return inner, class, true
	}
	return inner, otherwise, true
}

// throughTeredo returns the worse of the two nodes that a packet to a Teredo
// address meets (RFC 4380 section 4): the client, whose address is stored
// inverted, and the server, which takes part in opening the way.
func throughTeredo(b [16]byte) netip.Addr {
	client := netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]})
	server := netip.AddrFrom4([4]byte(b[4:8]))
	if blockOf(client).class == ClassPublic && blockOf(server).class != ClassPublic {
		return server
	}
	return client
}

// localNAT64 cannot know which of RFC 6052's layouts the site chose. None of
// these addresses is public (RFC 8215); the layouts are tried for those that
// even `private` must not open.
func localNAT64(b [16]byte) (netip.Addr, Class, bool) {
	for _, at := range [][4]int{{12, 13, 14, 15}, {6, 7, 9, 10}, {7, 9, 10, 11}, {9, 10, 11, 12}} {
		inner := netip.AddrFrom4([4]byte{b[at[0]], b[at[1]], b[at[2]], b[at[3]]})
		switch class := blockOf(inner).class; class {
		case ClassMetadata, ClassLinkLocal:
			return inner, class, true
		case ClassLoopback:
			if inner != netip.IPv4Unspecified() { // the zeros of another layout
				return inner, class, true
			}
		}
	}
	return last4(b), ClassPrivate, true
}
