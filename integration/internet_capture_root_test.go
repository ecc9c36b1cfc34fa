//go:build root

package integration

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sort"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// capture is a packet socket of the host, on all its interfaces: the oracle of
// what left it. packet(7) queues a packet while it is being sent, so whatever
// a program sent before it ended is there to be read.
type capture struct {
	t     *testing.T
	fd    int
	begun map[[2]netip.AddrPort]bool // TCP connections whose beginning was seen
}

// packet is one that the host sent, over the cable or over its loopback.
type packet struct {
	protocol string // tcp, udp, icmp, icmp6, or the protocol's number
	from, to netip.AddrPort
	bytes    []byte // from the network header on
	begins   bool   // a connection
	empty    bool   // TCP without a byte of a program's
}

// String names where it went: "tcp 10.1.2.3:80", "icmp 10.1.2.3".
func (p packet) String() string { return flow(p.protocol, p.to) }

func flow(protocol string, end netip.AddrPort) string {
	if protocol != "tcp" && protocol != "udp" {
		return protocol + " " + end.Addr().String()
	}
	return protocol + " " + end.String()
}

// listen begins a capture on the host.
func (n *internet) capture(t *testing.T) *capture {
	t.Helper()
	c := &capture{t: t, begun: map[[2]netip.AddrPort]bool{}}
	err := n.here.Do(func() (err error) {
		c.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return err
		}
		const room = 32 << 20
		all := binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, unix.ETH_P_ALL)) // in network order
		return errors.Join(unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, room),
			unix.Bind(c.fd, &unix.SockaddrLinklayer{Protocol: all}))
	})
	if err != nil {
		t.Fatalf("cannot capture: %v", err)
	}
	t.Cleanup(func() { unix.Close(c.fd) })
	return c
}

// sent drains the capture: everything that the host sent until now.
func (c *capture) sent() []packet {
	c.t.Helper()
	var packets []packet
	buffer := make([]byte, 64<<10)
	for {
		size, from, err := unix.Recvfrom(c.fd, buffer, 0)
		if errors.Is(err, unix.EAGAIN) {
			break
		}
		if err != nil {
			c.t.Fatalf("cannot read the capture: %v", err)
		}
		if link := from.(*unix.SockaddrLinklayer); link.Pkttype != unix.PACKET_OUTGOING {
			continue
		}
		if p, ok := parsePacket(bytes.Clone(buffer[:size])); ok && !p.kernels() && !c.tail(p) {
			packets = append(packets, p)
		}
	}
	if stats, err := unix.GetsockoptTpacketStats(c.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS); err != nil || stats.Drops != 0 {
		c.t.Fatalf("the capture is not whole: %+v, %v", stats, err)
	}
	return packets
}

// tail tells that p only ends a connection that was there before the capture:
// on a slow machine the control's last acknowledgement can come after its end.
func (c *capture) tail(p packet) bool {
	ends := [2]netip.AddrPort{p.from, p.to}
	if p.begins {
		c.begun[ends] = true
	}
	return p.protocol == "tcp" && p.empty && !c.begun[ends]
}

// parsePacket knows IP; what it does not know (ARP) never leaves the cable.
func parsePacket(data []byte) (packet, bool) {
	var next byte
	var from, to netip.Addr
	var body []byte
	switch {
	case len(data) >= 20 && data[0]>>4 == 4 && len(data) >= int(data[0]&15)*4:
		next, body = data[9], data[int(data[0]&15)*4:]
		from, to = netip.AddrFrom4([4]byte(data[12:16])), netip.AddrFrom4([4]byte(data[16:20]))
	case len(data) >= 40 && data[0]>>4 == 6:
		next, body = data[6], data[40:]
		from, to = netip.AddrFrom16([16]byte(data[8:24])), netip.AddrFrom16([16]byte(data[24:40]))
		if next == unix.IPPROTO_HOPOPTS && len(body) >= 8 { // MLD has one
			next, body = body[0], body[min(len(body), int(body[1])*8+8):]
		}
	default:
		return packet{}, false
	}
	p := packet{protocol: fmt.Sprint(next), bytes: data}
	names := map[byte]string{unix.IPPROTO_TCP: "tcp", unix.IPPROTO_UDP: "udp", unix.IPPROTO_ICMP: "icmp", unix.IPPROTO_ICMPV6: "icmp6"}
	if name, ok := names[next]; ok {
		p.protocol = name
	}
	var ports [2]uint16
	if (p.protocol == "tcp" || p.protocol == "udp") && len(body) >= 4 {
		ports[0], ports[1] = binary.BigEndian.Uint16(body), binary.BigEndian.Uint16(body[2:])
	}
	if p.protocol == "tcp" && len(body) >= 14 { // RFC 9293: data offset, then the flags
		p.begins, p.empty = body[13]&2 != 0, len(body) == int(body[12]>>4)*4
	}
	p.from, p.to = netip.AddrPortFrom(from, ports[0]), netip.AddrPortFrom(to, ports[1])
	return p, true
}

// kernels tells that the kernel sends this by itself: neighbours, routers and
// groups of IPv6 (RFC 4861, 3810), and that nobody waits for a datagram.
func (p packet) kernels() bool {
	if len(p.bytes) == 0 {
		return false
	}
	switch p.protocol {
	case "icmp":
		kind := p.bytes[int(p.bytes[0]&15)*4:]
		return len(kind) > 0 && kind[0] == 3
	case "icmp6":
		kind := p.bytes[40:]
		if p.bytes[6] == unix.IPPROTO_HOPOPTS {
			return true
		}
		return len(kind) > 0 && (kind[0] == 1 || kind[0] >= 130 && kind[0] <= 143)
	}
	return false
}

// flows names the ends of what was sent, each once.
func flows(packets []packet) []string {
	var all []string
	for _, p := range packets {
		all = append(all, p.String())
	}
	sort.Strings(all)
	return slices.Compact(all)
}

// onlyTo fails the test if anything was sent that belongs to no flow with one
// of the ends ("tcp 93.184.216.34:443"), and returns what was sent.
func (c *capture) onlyTo(ends ...string) []packet {
	c.t.Helper()
	packets := c.sent()
	for _, p := range packets {
		if !slices.Contains(ends, p.String()) && !slices.Contains(ends, flow(p.protocol, p.from)) {
			c.t.Errorf("left the host: %s (from %s); allowed: %q", p, p.from, ends)
		}
	}
	return packets
}

// asks is the flow of the host's own questions to its name server.
var asks = []string{"udp " + resolverAddress + ":53", "tcp " + resolverAddress + ":53"}

// neverSaid fails the test if a name was in any packet, as text or as DNS has it.
func neverSaid(t *testing.T, packets []packet, name string) {
	t.Helper()
	for _, p := range packets {
		if says(p, name) {
			t.Errorf("%q left the host in a packet to %s: %q", name, p, p.bytes)
		}
	}
}

func says(p packet, name string) bool {
	var labels []byte
	for _, label := range strings.Split(name, ".") {
		labels = append(append(labels, byte(len(label))), label...)
	}
	lower := bytes.ToLower(p.bytes)
	return bytes.Contains(lower, bytes.ToLower([]byte(name))) || bytes.Contains(lower, bytes.ToLower(labels))
}
