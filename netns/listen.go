package netns

import (
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// The kinds of sockets that Listen makes, as the gate's protocol names them.
const (
	KindTCP      = "tcp"       // every TCP connection
	KindUDP      = "udp"       // every datagram
	KindDNSTCP   = "dns-tcp"   // port 53 of any address, but of loopback only the name server's
	KindDNSUDP   = "dns-udp"   // the same
	KindHostPort = "host-port" // one port of the agent's loopback
)

// backlog is the default of net.core.somaxconn since Linux 5.4; listen(2) would cut a larger value.
const backlog = 4096

// Socket is one of the gate's sockets inside a namespace; its receiver closes it. It is
// non-blocking and bound, and a TCP socket listens. Datagram sockets report the original
// destination with IP_RECVORIGDSTADDR. A socket of KindDNSUDP answers from that address
// with IP_PKTINFO (IPV6_PKTINFO). One of KindUDP cannot, because its port differs from the
// destination's; Flow makes sockets that can.
type Socket struct {
	Kind string
	Port uint16 // of KindHostPort: the same number on the host and inside
	File *os.File
}

// socket describes a Socket that Listen will make.
type socket struct {
	kind string
	at   netip.AddrPort
	port uint16 // see Socket
}

func (s socket) String() string { return fmt.Sprintf("%s %s", s.kind, s.at) }

// transparent reports whether the socket receives packets for other addresses than its own:
// all do except those on loopback.
func (s socket) transparent() bool { return !s.at.Addr().IsLoopback() }

// datagrams reports whether the socket is a UDP one, which neither listens nor accepts.
func (s socket) datagrams() bool { return s.kind == KindUDP || s.kind == KindDNSUDP }

// rule redirects what goes to port, or with 0 all traffic of its protocol, to the
// transparent socket.
func (s socket) rule(port uint16) rule {
	r := rule{version: 4, protocol: unix.IPPROTO_TCP, port: port, action: tproxy, socket: s.at}
	if s.at.Addr().Is6() {
		r.version = 6
	}
	if s.datagrams() {
		r.protocol = unix.IPPROTO_UDP
	}
	return r
}

// sockets lists what Listen makes. A host port is a socket on the agent's loopback, where
// no rule redirects.
func (p Plan) sockets() []socket {
	var all []socket
	if p.everything {
		all = append(all, gateSockets(gate4)...)
		if p.ipv6 {
			all = append(all, gateSockets(gate6)...)
		}
	}
	for _, port := range p.hostPorts {
		all = append(all, socket{KindHostPort, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port), port})
		if p.ipv6 {
			all = append(all, socket{KindHostPort, netip.AddrPortFrom(loopback6.Addr(), port), port})
		}
	}
	return all
}

// gateSockets separates DNS from all other traffic, because the gate answers the former and
// relays the latter.
func gateSockets(a netip.Addr) []socket {
	dns, rest := netip.AddrPortFrom(a, dnsPort), netip.AddrPortFrom(a, gatePort)
	return []socket{
		{kind: KindDNSTCP, at: dns}, {kind: KindDNSUDP, at: dns},
		{kind: KindTCP, at: rest}, {kind: KindUDP, at: rest},
	}
}

// Listen makes the sockets of the plan that was applied to n, all or none. All copies of an
// earlier call's sockets must be closed before.
func (n *Namespace) Listen() ([]Socket, error) {
	var made []Socket
	err := n.do(func() error {
		for _, s := range n.plan.sockets() {
			file, err := s.open()
			if err != nil {
				return fmt.Errorf("cannot listen for %s: %w", s, err)
			}
			made = append(made, Socket{Kind: s.kind, Port: s.port, File: file})
		}
		return nil
	})
	if err != nil {
		for _, s := range made {
			s.File.Close()
		}
		return nil, err
	}
	return made, nil
}

// ListenInside makes a TCP socket that listens on a port of the namespace's own loopback.
// The caller closes it.
func (n *Namespace) ListenInside(port uint16) (file *os.File, err error) {
	err = n.do(func() error {
		file, err = socket{KindHostPort, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port), port}.open()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot listen on port %d inside: %w", port, err)
	}
	return file, nil
}

func (s socket) open() (*os.File, error) {
	kind := unix.SOCK_STREAM
	if s.datagrams() {
		kind = unix.SOCK_DGRAM
	}
	return open(kind, s.at, s.String(), func(fd int) error {
		if err := s.prepare(fd); err != nil {
			return err
		}
		if err := unix.Bind(fd, sockaddr(s.at)); err != nil {
			return os.NewSyscallError("bind", err)
		}
		if s.datagrams() {
			return nil
		}
		return os.NewSyscallError("listen", unix.Listen(fd, backlog))
	})
}

// prepare sets the options that must be set before bind(2): without IP_TRANSPARENT a
// foreign address cannot be bound.
func (s socket) prepare(fd int) error {
	var options []option
	if s.transparent() {
		options = append(options, optTransparent)
	}
	if s.datagrams() {
		options = append(options, optOriginal)
	} else {
		options = append(options, optReuse) // else connections in TIME_WAIT would prevent the bind
	}
	return set(fd, s.at.Addr(), options...)
}
