package netns

import (
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// The kinds of sockets that Listen makes, in the words of the gate's protocol.
const (
	KindTCP      = "tcp"       // every TCP connection
	KindUDP      = "udp"       // every datagram
	KindDNSTCP   = "dns-tcp"   // port 53 of any address
	KindDNSUDP   = "dns-udp"   // the same
	KindHostPort = "host-port" // one port of the agent's loopback
)

// backlog is what the namespace's somaxconn allows on every kernel since 5.4.
const backlog = 4096

// Socket is one of the gate's sockets inside a namespace, for its receiver to
// close. It does not block, and it is bound; TCP's listen. Those of datagrams
// tell with IP_RECVORIGDSTADDR where each was sent; with that address in
// IP_PKTINFO (IPV6_PKTINFO) a socket of KindDNSUDP answers from there. One of
// KindUDP cannot, for its port is another: Flow makes sockets that can.
type Socket struct {
	Kind string
	Port uint16 // of KindHostPort: the host's, which is also the agent's
	File *os.File
}

// socket is a Socket to be.
type socket struct {
	kind string
	at   netip.AddrPort
	port uint16 // see Socket
}

func (s socket) String() string { return fmt.Sprintf("%s %s", s.kind, s.at) }

// transparent tells who gets what was sent elsewhere: all but those on loopback.
func (s socket) transparent() bool { return !s.at.Addr().IsLoopback() }

func (s socket) datagrams() bool { return s.kind == KindUDP || s.kind == KindDNSUDP }

// rule leads to the transparent socket what goes to port, or with 0 all of its protocol.
func (s socket) rule(port uint16) rule {
	r := rule{version: 4, protocol: unix.IPPROTO_TCP, port: port, verdict: tproxy, socket: s.at}
	if s.at.Addr().Is6() {
		r.version = 6
	}
	if s.datagrams() {
		r.protocol = unix.IPPROTO_UDP
	}
	return r
}

func (p Plan) sockets() []socket {
	var all []socket
	if p.everything {
		if !p.engine { // there another may listen at this address, and what is sent to it is led to the next two
			all = append(all, socket{kind: KindDNSTCP, at: nameserver}, socket{kind: KindDNSUDP, at: nameserver})
		}
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

func gateSockets(a netip.Addr) []socket {
	dns, rest := netip.AddrPortFrom(a, dnsPort), netip.AddrPortFrom(a, gatePort)
	return []socket{
		{kind: KindDNSTCP, at: dns}, {kind: KindDNSUDP, at: dns},
		{kind: KindTCP, at: rest}, {kind: KindUDP, at: rest},
	}
}

// Listen makes the sockets of the plan that was applied to n, all or none. Those
// of an earlier call must be closed by everybody who had them.
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

func (s socket) prepare(fd int) error {
	var options []option
	if s.transparent() {
		options = append(options, optTransparent)
	}
	if s.datagrams() {
		options = append(options, optOriginal)
	} else {
		options = append(options, optReuse) // connections in TIME_WAIT keep no listener away
	}
	return set(fd, s.at.Addr(), options...)
}
