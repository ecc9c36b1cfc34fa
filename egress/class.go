package egress

import "net/netip"

// Class says what kind of host an address reaches, as far as its bits show.
type Class string

// The classes. Classify never returns ClassHost, because only the host knows its own
// addresses (Config.IsHost).
const (
	ClassPublic        Class = "public"
	ClassPrivate       Class = "private"
	ClassCGNAT         Class = "cgnat"
	ClassHost          Class = "host"
	ClassLoopback      Class = "loopback"
	ClassMetadata      Class = "metadata"
	ClassLinkLocal     Class = "link-local"
	ClassMulticast     Class = "multicast"
	ClassBroadcast     Class = "broadcast"
	ClassDocumentation Class = "documentation"
	ClassReserved      Class = "reserved"
)

// block is one row of the table. An address has the class of the first row that contains it.
type block struct {
	prefix netip.Prefix
	class  Class
	source string // the document that says so
}

// blocks follows IANA's two special-purpose address registries, with more specific rows
// first, and the cloud providers' documents on metadata services. Metadata services are a
// class of their own, because they give out credentials, and because one of them
// (168.63.129.16) would otherwise be public.
var blocks = []block{
	row("169.254.169.254/32", ClassMetadata, "EC2, Compute Engine, Azure, OpenStack and others"),
	row("169.254.170.2/32", ClassMetadata, "ECS task credentials"),
	row("169.254.170.23/32", ClassMetadata, "EKS Pod Identity"),
	row("169.254.42.42/32", ClassMetadata, "Scaleway"),
	row("169.254.0.23/32", ClassMetadata, "Tencent Cloud"),
	row("100.100.100.200/32", ClassMetadata, "Alibaba Cloud"),
	row("168.63.129.16/32", ClassMetadata, "Azure WireServer"),
	row("192.0.0.192/32", ClassMetadata, "Oracle Cloud Classic"),
	row("0.0.0.0/32", ClassLoopback, "ip(7): INADDR_ANY as a destination is this host"),
	row("0.0.0.0/8", ClassReserved, "RFC 791"),
	row("10.0.0.0/8", ClassPrivate, "RFC 1918"),
	row("100.64.0.0/10", ClassCGNAT, "RFC 6598"),
	row("127.0.0.0/8", ClassLoopback, "RFC 1122"),
	row("169.254.0.0/16", ClassLinkLocal, "RFC 3927"),
	row("172.16.0.0/12", ClassPrivate, "RFC 1918"),
	row("192.0.0.9/32", ClassPublic, "RFC 7723"),
	row("192.0.0.10/32", ClassPublic, "RFC 8155"),
	row("192.0.0.0/24", ClassReserved, "RFC 6890"),
	row("192.0.2.0/24", ClassDocumentation, "RFC 5737"),
	row("192.88.99.0/24", ClassReserved, "RFC 7526"),
	row("192.168.0.0/16", ClassPrivate, "RFC 1918"),
	row("198.18.0.0/15", ClassReserved, "RFC 2544, benchmarks"),
	row("198.51.100.0/24", ClassDocumentation, "RFC 5737"),
	row("203.0.113.0/24", ClassDocumentation, "RFC 5737"),
	row("224.0.0.0/4", ClassMulticast, "RFC 5771"),
	row("255.255.255.255/32", ClassBroadcast, "RFC 919"),
	row("240.0.0.0/4", ClassReserved, "RFC 1112"),
	row("0.0.0.0/0", ClassPublic, "IANA IPv4 registry"),

	row("fd00:ec2::254/128", ClassMetadata, "EC2"),
	row("fd00:ec2::23/128", ClassMetadata, "EKS Pod Identity"),
	row("fd20:ce::254/128", ClassMetadata, "Compute Engine"),
	row("fd00:c1::a9fe:a9fe/128", ClassMetadata, "Oracle Cloud"),
	row("fd00:a9fe:a9fe::1/128", ClassMetadata, "Akamai (Linode)"),
	row("fd00:42::42/128", ClassMetadata, "Scaleway"),
	row("fe80::a9fe:a9fe/128", ClassMetadata, "OpenStack"),
	row("::/128", ClassLoopback, "ipv6(7): the unspecified address as a destination is this host"),
	row("::1/128", ClassLoopback, "RFC 4291"),
	row("64:ff9b:1::/48", ClassPrivate, "RFC 8215, local NAT64"),
	row("2001:1::1/128", ClassPublic, "RFC 7723"),
	row("2001:1::2/128", ClassPublic, "RFC 8155"),
	row("2001:1::3/128", ClassPublic, "RFC 9665"),
	row("2001:3::/32", ClassPublic, "RFC 7450"),
	row("2001:4:112::/48", ClassPublic, "RFC 7535"),
	row("2001:20::/28", ClassPublic, "RFC 7343"),
	row("2001:30::/28", ClassPublic, "RFC 9374"),
	row("2001::/23", ClassReserved, "RFC 2928"),
	row("2001:db8::/32", ClassDocumentation, "RFC 3849"),
	row("3fff::/20", ClassDocumentation, "RFC 9637"),
	row("2000::/3", ClassPublic, "RFC 4291, global unicast"),
	row("fc00::/7", ClassPrivate, "RFC 4193"),
	row("fe80::/10", ClassLinkLocal, "RFC 4291"),
	row("fec0::/10", ClassPrivate, "RFC 3879, site-local"),
	row("ff00::/8", ClassMulticast, "RFC 4291"),
	row("::/0", ClassReserved, "IANA IPv6 registry: not global unicast"),
}

func row(prefix string, class Class, source string) block {
	return block{netip.MustParsePrefix(prefix), class, source}
}

// Classify returns the class of addr. An IPv6 address that carries an IPv4 address (mapped,
// NAT64, 6to4, Teredo, ISATAP …) has the class of that one. An invalid address and one with
// a zone are ClassReserved, which only a rule for the address itself allows.
func Classify(addr netip.Addr) Class {
	if !addr.IsValid() || addr.Zone() != "" {
		return ClassReserved
	}
	addr = addr.Unmap()
	if addr.Is4() {
		return blockOf(addr).class
	}
	if inner, class, ok := carried(addr); ok {
		if class != "" {
			return class
		}
		return blockOf(inner).class
	}
	return blockOf(addr).class
}

// blockOf always finds a block, because the table ends each family with its whole address space.
func blockOf(addr netip.Addr) *block {
	for i := range blocks {
		if blocks[i].prefix.Contains(addr) {
			return &blocks[i]
		}
	}
	return &blocks[len(blocks)-1]
}

// holds reports whether prefix, whose first address is in the block, is entirely within it.
// The last row of a family does not count: it is the remainder, not a block.
func (b *block) holds(prefix netip.Prefix, class Class) bool {
	return b.class == class && b.prefix.Bits() > 0 && b.prefix.Bits() <= prefix.Bits()
}
