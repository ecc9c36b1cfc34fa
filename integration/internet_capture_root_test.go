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

// capture is a packet socket on all interfaces of the host; it shows what left the host.
// packet(7) queues a packet while it is being sent, so whatever a program sent before it ended
// can be read.
type capture struct {
	t     *testing.T
	fd    int
	begun map[[2]netip.AddrPort]bool // TCP connections whose SYN was captured
}

// packet is a packet that the host sent, over the link or over its loopback.
type packet struct {
	protocol string // tcp, udp, icmp, icmp6, or the protocol's number
	from, to netip.AddrPort
	bytes    []byte // from the network header on
	begins   bool   // it opens a connection
	empty    bool   // TCP without payload
}

// String returns where it went: "tcp 10.1.2.3:80", "icmp 10.1.2.3".
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
		all := binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, unix.ETH_P_ALL)) // in network byte order
		return errors.Join(unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, room),
			unix.Bind(c.fd, &unix.SockaddrLinklayer{Protocol: all}))
	})
	if err != nil {
		t.Fatalf("cannot capture: %v", err)
	}
	t.Cleanup(func() { unix.Close(c.fd) })
	return c
}

// sent reads everything that the host sent until now.
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

// tail reports whether p only ends a connection that existed before the capture: on a slow
// machine the control's last acknowledgement may come late.
func (c *capture) tail(p packet) bool {
	ends := [2]netip.AddrPort{p.from, p.to}
	if p.begins {
		c.begun[ends] = true
	}
	return p.protocol == "tcp" && p.empty && !c.begun[ends]
}

// parsePacket parses IP; other packets (ARP) never leave the link.
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
		if next == unix.IPPROTO_HOPOPTS && len(body) >= 8 { // MLD packets have one
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

// kernels reports whether the kernel sends this packet by itself: IPv6 neighbours, routers and
// groups (RFC 4861, 3810), and the report that no socket receives a datagram.
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

// flows returns the destinations of what was sent, each once.
func flows(packets []packet) []string {
	var all []string
	for _, p := range packets {
		all = append(all, p.String())
	}
	sort.Strings(all)
	return slices.Compact(all)
}

// onlyTo fails the test if anything was sent to a destination other than ends ("tcp
// 93.184.216.34:443"), and returns what was sent.
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

// asks are the flows of the host's own queries to its name server.
var asks = []string{"udp " + resolverAddress + ":53", "tcp " + resolverAddress + ":53"}

// neverSaid fails the test if any packet contained a name, as text or in DNS's format.
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
