package egress

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

var classRows = []struct {
	addr string
	want Class
}{
	{"1.1.1.1", ClassPublic}, {"93.184.216.34", ClassPublic}, {"223.255.255.255", ClassPublic}, {"192.0.0.9", ClassPublic},
	{"2606:4700::1111", ClassPublic}, {"2001:4860:4860::8888", ClassPublic}, {"2001:1::1", ClassPublic}, {"2620:4f:8000::1", ClassPublic},

	{"10.0.0.0", ClassPrivate}, {"10.255.255.255", ClassPrivate}, {"9.255.255.255", ClassPublic}, {"11.0.0.0", ClassPublic},
	{"172.15.255.255", ClassPublic}, {"172.16.0.0", ClassPrivate}, {"172.31.255.255", ClassPrivate}, {"172.32.0.0", ClassPublic},
	{"192.167.255.255", ClassPublic}, {"192.168.0.0", ClassPrivate}, {"192.168.255.255", ClassPrivate}, {"192.169.0.0", ClassPublic},
	{"fc00::", ClassPrivate}, {"fdff:ffff::1", ClassPrivate}, {"fec0::1", ClassPrivate},
	{"100.63.255.255", ClassPublic}, {"100.64.0.0", ClassCGNAT}, {"100.127.255.255", ClassCGNAT}, {"100.128.0.0", ClassPublic},

	{"127.0.0.1", ClassLoopback}, {"127.255.255.255", ClassLoopback}, {"0.0.0.0", ClassLoopback}, {"::", ClassLoopback}, {"::1", ClassLoopback},
	{"0.0.0.1", ClassReserved}, {"0.255.255.255", ClassReserved},
	{"169.254.0.1", ClassLinkLocal}, {"169.254.169.253", ClassLinkLocal}, {"fe80::1", ClassLinkLocal}, {"febf::1", ClassLinkLocal},

	{"169.254.169.254", ClassMetadata}, {"169.254.170.2", ClassMetadata}, {"169.254.170.23", ClassMetadata}, {"fd00:ec2::254", ClassMetadata},
	{"fd00:ec2::23", ClassMetadata}, {"100.100.100.200", ClassMetadata}, {"168.63.129.16", ClassMetadata}, {"192.0.0.192", ClassMetadata},
	{"fd20:ce::254", ClassMetadata}, {"fe80::a9fe:a9fe", ClassMetadata}, {"168.63.129.17", ClassPublic},

	{"224.0.0.251", ClassMulticast}, {"239.255.255.255", ClassMulticast}, {"ff02::fb", ClassMulticast}, {"ff0e::1", ClassMulticast},
	{"255.255.255.255", ClassBroadcast}, {"240.0.0.1", ClassReserved}, {"255.255.255.254", ClassReserved},
	{"192.0.2.1", ClassDocumentation}, {"198.51.100.1", ClassDocumentation}, {"203.0.113.1", ClassDocumentation},
	{"2001:db8::1", ClassDocumentation}, {"3fff::1", ClassDocumentation},
	{"192.0.0.1", ClassReserved}, {"192.88.99.1", ClassReserved}, {"198.18.0.1", ClassReserved}, {"198.20.0.0", ClassPublic},
	{"2001:2::1", ClassReserved}, {"2001:10::1", ClassReserved}, {"100::1", ClassReserved}, {"5f00::1", ClassReserved}, {"4000::1", ClassReserved}, {"::2:0:0:0", ClassReserved},

	// IPv4-mapped, RFC 4291 2.5.5.2
	{"::ffff:127.0.0.1", ClassLoopback}, {"::ffff:0:0", ClassLoopback}, {"::ffff:a9fe:a9fe", ClassMetadata}, {"::ffff:8.8.8.8", ClassPublic},
	// IPv4-compatible and IPv4-translated: no network routes those of public addresses
	{"::127.0.0.1", ClassLoopback}, {"::10.1.2.3", ClassPrivate}, {"::169.254.169.254", ClassMetadata}, {"::8.8.8.8", ClassReserved},
	{"::ffff:0:10.1.2.3", ClassPrivate}, {"::ffff:0:8.8.8.8", ClassReserved},
	// NAT64
	{"64:ff9b::8.8.8.8", ClassPublic}, {"64:ff9b::10.1.2.3", ClassPrivate}, {"64:ff9b::127.0.0.1", ClassLoopback}, {"64:ff9b::0.0.0.0", ClassLoopback},
	{"64:ff9b::169.254.169.254", ClassMetadata}, {"64:ff9b::100.64.0.1", ClassCGNAT}, {"64:ff9b::1:0:0", ClassReserved},
	{"64:ff9b:1::8.8.8.8", ClassPrivate}, {"64:ff9b:1::a9fe:a9fe", ClassMetadata}, {"64:ff9b:1:a9fe:a9:fe00::", ClassMetadata},
	{"64:ff9b:1:7f00:0:100::", ClassLoopback}, {"64:ff9b:1::", ClassPrivate}, {"64:ff9b:2::1", ClassReserved},
	// 6to4
	{"2002:808:808::1", ClassPublic}, {"2002:a01:203::1", ClassPrivate}, {"2002:7f00:1::", ClassLoopback}, {"2002:a9fe:a9fe::", ClassMetadata},
	{"2002:c0a8:101::1", ClassPrivate}, {"2002::", ClassLoopback},
	// Teredo: server 8.8.8.8 and the client inverted; then a private server
	{"2001:0:808:808:0:0:f7f7:f7f7", ClassPublic}, {"2001:0:808:808:0:0:f5fe:fdfc", ClassPrivate}, {"2001:0:808:808:0:0:80ff:fffe", ClassLoopback},
	{"2001:0:808:808::5601:5601", ClassMetadata}, {"2001:0:a01:203:0:0:f7f7:f7f7", ClassPrivate},
	// ISATAP
	{"2606:4700::5efe:10.1.2.3", ClassPrivate}, {"2606:4700::200:5efe:127.0.0.1", ClassLoopback}, {"2606:4700::5efe:8.8.8.8", ClassPublic},
	{"fe80::5efe:8.8.8.8", ClassLinkLocal}, {"fd00::5efe:169.254.169.254", ClassMetadata},
	// a zone means nothing here
	{"fe80::1%eth0", ClassReserved}, {"2606:4700::1111%1", ClassReserved},
}

func TestAddressesAreClassedByWhatTheyReach(t *testing.T) {
	t.Parallel()
	for _, row := range classRows {
		if got := Classify(netip.MustParseAddr(row.addr)); got != row.want {
			t.Errorf("%s: %s, want %s", row.addr, got, row.want)
		}
	}
	if got := Classify(netip.Addr{}); got != ClassReserved {
		t.Errorf("no address: %s", got)
	}
}

// TestNoRowHidesAnother: the first row that contains an address decides, so a row after a
// wider one would have no effect.
func TestNoRowHidesAnother(t *testing.T) {
	t.Parallel()
	for i, late := range blocks {
		for _, early := range blocks[:i] {
			if early.prefix.Bits() <= late.prefix.Bits() && early.prefix.Contains(late.prefix.Addr()) {
				t.Errorf("%s stands after %s", late.prefix, early.prefix)
			}
		}
		if late.source == "" || late.prefix != late.prefix.Masked() {
			t.Errorf("%s: no source, or host bits", late.prefix)
		}
	}
}

// TestClassesAgreeWithTheStandardLibrary compares with an independent implementation that
// knows fewer classes.
func TestClassesAgreeWithTheStandardLibrary(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		addr := anyAddr(t)
		special := addr.IsPrivate() || addr.IsLoopback() || addr.IsUnspecified() || addr.IsMulticast() || addr.IsLinkLocalUnicast() || !addr.IsGlobalUnicast()
		if Classify(addr) == ClassPublic && special {
			t.Fatalf("%s is public", addr)
		}
		if Classify(netip.AddrFrom16(addr.As16())) != Classify(addr) {
			t.Fatalf("%s: the mapped form is of another class", addr)
		}
	})
}

// TestWhatCarriesASpecialAddressIsNeverPublic: in whatever form it is embedded.
func TestWhatCarriesASpecialAddressIsNeverPublic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		four := rapid.SampledFrom(specialAddresses).Draw(t, "special").As4()
		six := rapid.SampledFrom([]func([4]byte) netip.Addr{
			func(b [4]byte) netip.Addr { return filled("64:ff9b::", 12, b) },
			func(b [4]byte) netip.Addr { return filled("64:ff9b:1::", 12, b) },
			func(b [4]byte) netip.Addr { return filled("::", 12, b) },
			func(b [4]byte) netip.Addr { return filled("::ffff:0:0", 12, b) },
			func(b [4]byte) netip.Addr { return filled("::ffff:0:0:0", 12, b) },
			func(b [4]byte) netip.Addr { return filled("2606:4700::5efe:0:0", 12, b) },
			func(b [4]byte) netip.Addr { return filled("2002:0:0:5::9", 2, b) },
			func(b [4]byte) netip.Addr { return filled("2001:0:0:0:0:0:f7f7:f7f7", 4, b) },
			func(b [4]byte) netip.Addr {
				return filled("2001:0:808:808::", 12, [4]byte{^b[0], ^b[1], ^b[2], ^b[3]})
			},
		}).Draw(t, "form")(four)
		if got := Classify(six); got == ClassPublic {
			t.Fatalf("%s carries %v and is public", six, four)
		}
	})
}

var specialAddresses = []netip.Addr{
	netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("0.0.0.0"), netip.MustParseAddr("10.1.2.3"), netip.MustParseAddr("172.16.5.5"),
	netip.MustParseAddr("192.168.1.1"), netip.MustParseAddr("169.254.169.254"), netip.MustParseAddr("169.254.9.9"), netip.MustParseAddr("100.64.1.1"),
	netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("224.0.0.1"), netip.MustParseAddr("255.255.255.255"), netip.MustParseAddr("168.63.129.16"),
}

func filled(template string, at int, b [4]byte) netip.Addr {
	all := netip.MustParseAddr(template).As16()
	copy(all[at:], b[:])
	return netip.AddrFrom16(all)
}

// anyAddr draws addresses of both families, often near the bounds of the table's rows.
func anyAddr(t *rapid.T) netip.Addr {
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		return netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "v4")))
	case 1:
		return netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "v6")))
	case 2:
		if addr := rapid.SampledFrom(blocks).Draw(t, "block").prefix.Addr(); addr.Prev().IsValid() {
			return addr.Prev()
		}
	}
	addr := rapid.SampledFrom(blocks).Draw(t, "block").prefix.Addr()
	if rapid.Bool().Draw(t, "next") && addr.Next().IsValid() {
		return addr.Next()
	}
	return addr
}
