package egress

import (
	"encoding/binary"
	"net/netip"
)

// IPv6 forms that carry an IPv4 address at a fixed place. Network-specific NAT64 prefixes
// (RFC 6052 section 2.2) look like any other address and cannot be recognised.
var (
	nat64       = netip.MustParsePrefix("64:ff9b::/96")
	nat64Local  = netip.MustParsePrefix("64:ff9b:1::/48")
	sixToFour   = netip.MustParsePrefix("2002::/16")
	teredo      = netip.MustParsePrefix("2001::/32")
	compatible  = netip.MustParsePrefix("::/96")
	translated  = netip.MustParsePrefix("::ffff:0:0:0/96")
	unspecified = netip.MustParsePrefix("::/127") // :: and ::1 carry no IPv4 address
)

// carried returns the IPv4 address that a packet to an IPv6 address reaches. Without this
// check a rule could be bypassed: 64:ff9b::169.254.169.254 reaches the metadata service.
// class, if set, replaces the IPv4 address's own class. ok is false if addr carries none.
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
	// ISATAP is an interface identifier under any prefix. Its u and g bits may have either
	// value, so they are masked out.
	case binary.BigEndian.Uint32(b[8:12])&^0x03000000 == 0x00005efe: // RFC 5214 6.1
		return unlessPublic(last4(b), blockOf(addr).class)
	}
	return netip.Addr{}, "", false
}

// last4 is the place in most forms.
func last4(b [16]byte) netip.Addr { return netip.AddrFrom4([4]byte(b[12:])) }

// unlessPublic is for obsolete forms, which no router translates any more. The IPv4 address
// counts only if it makes the address more restricted.
func unlessPublic(inner netip.Addr, otherwise Class) (netip.Addr, Class, bool) {
	if class := blockOf(inner).class; class != ClassPublic {
		return inner, class, true
	}
	return inner, otherwise, true
}

// throughTeredo returns the more restricted of the two hosts that a packet to a Teredo
// address reaches (RFC 4380 section 4): the client, whose address is stored inverted, and
// the server, which takes part in opening the path.
func throughTeredo(b [16]byte) netip.Addr {
	client := netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]})
	server := netip.AddrFrom4([4]byte(b[4:8]))
	if blockOf(client).class == ClassPublic && blockOf(server).class != ClassPublic {
		return server
	}
	return client
}

// localNAT64 cannot know which layout of RFC 6052 the site uses. No such address is public
// (RFC 8215), so private is the default. All layouts are tried for the classes that the
// group `private` must not allow.
func localNAT64(b [16]byte) (netip.Addr, Class, bool) {
	// Prefixes of 96, 48, 56 and 64 bits. Byte 8 holds no part of the address (RFC 6052
	// section 2.2).
	for _, at := range [][4]int{{12, 13, 14, 15}, {6, 7, 9, 10}, {7, 9, 10, 11}, {9, 10, 11, 12}} {
		inner := netip.AddrFrom4([4]byte{b[at[0]], b[at[1]], b[at[2]], b[at[3]]})
		switch class := blockOf(inner).class; class {
		case ClassMetadata, ClassLinkLocal:
			return inner, class, true
		case ClassLoopback:
			if inner != netip.IPv4Unspecified() { // zero bytes of another layout
				return inner, class, true
			}
		}
	}
	return last4(b), ClassPrivate, true
}
