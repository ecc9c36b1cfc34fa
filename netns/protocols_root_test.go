//go:build root

package netns

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// echo is an ICMP echo request with its checksum, RFC 792.
var echo = []byte{8, 0, 0xf7, 0xff, 0, 0, 0, 0}

// raw is a raw socket inside, for which the host's root is needed.
func raw(t *testing.T, n *Namespace, to string, protocol int) *os.File {
	t.Helper()
	domain := unix.AF_INET
	if netip.MustParseAddr(to).Is6() {
		domain = unix.AF_INET6
	}
	var file *os.File
	err := n.do(func() error {
		fd, err := unix.Socket(domain, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
		if err == nil {
			file = os.NewFile(uintptr(fd), "raw")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	if err := file.SetDeadline(time.Now().Add(patience())); err != nil {
		t.Fatal(err)
	}
	return file
}

func sendRaw(file *os.File, to string, packet []byte) error {
	return control(file, func(fd int) error {
		return unix.Sendto(fd, packet, 0, sockaddr(netip.AddrPortFrom(netip.MustParseAddr(to), 0)))
	})
}

func TestOtherProtocolsGoNowhere(t *testing.T) {
	prepare(t)
	ruled, free := listening(t, newPlan(Config{Everything: true}, true)).Namespace, unruled(t)
	for _, c := range []struct {
		name, to string
		protocol int
		packet   []byte
	}{
		{"sctp", "203.0.113.5", unix.IPPROTO_SCTP, []byte("init")},
		{"sctp 6", "2620:fe::fe", unix.IPPROTO_SCTP, []byte("init")},
		{"igmp", "203.0.113.5", unix.IPPROTO_IGMP, []byte("report")},
		{"experimental", "203.0.113.5", 253, []byte("raw")},
		{"udp-lite", "10.1.2.3", unix.IPPROTO_UDPLITE, make([]byte, 8)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := sendRaw(raw(t, ruled, c.to, c.protocol), c.to, c.packet); err != unix.EPERM {
				t.Errorf("sent: %v, want EPERM", err)
			}
			// Control: without rules the packet arrives at any listener.
			socket := raw(t, free, c.to, c.protocol)
			if err := sendRaw(socket, c.to, c.packet); err != nil {
				t.Errorf("control: %v", err)
			}
			if _, err := socket.Read(make([]byte, 100)); err != nil {
				t.Errorf("control: nothing came back: %v", err)
			}
		})
	}
}

// TestAnEchoIsRefusedByName: with an error that ping prints ("Packet filtered"). Without rules
// the kernel answers.
func TestAnEchoIsRefusedByName(t *testing.T) {
	prepare(t)
	ruled, free := listening(t, newPlan(Config{Everything: true}, true)).Namespace, unruled(t)
	for target, refusal := range map[string]unix.Errno{"203.0.113.5": unix.EHOSTUNREACH, "2620:fe::fe": unix.EACCES} {
		if err := ping(t, ruled, target); !errors.Is(err, refusal) {
			t.Errorf("%s: %v, want %v", target, err, refusal)
		}
		if err := ping(t, free, target); err != nil {
			t.Errorf("control: %s: %v", target, err)
		}
	}
	for _, own := range []string{"127.0.0.1", "::1"} {
		if err := ping(t, ruled, own); err != nil {
			t.Errorf("%s: %v", own, err)
		}
	}
}

// ping sends an echo request as any user may, icmp(7), and waits for the answer.
func ping(t *testing.T, n *Namespace, to string) error {
	t.Helper()
	var file *os.File
	err := n.do(func() error {
		address := netip.AddrPortFrom(netip.MustParseAddr(to), 0)
		domain, protocol := unix.AF_INET, unix.IPPROTO_ICMP
		if address.Addr().Is6() {
			domain, protocol = unix.AF_INET6, unix.IPPROTO_ICMPV6
		}
		fd, err := unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
		if err != nil {
			return err
		}
		file = os.NewFile(uintptr(fd), "ping")
		return unix.Connect(fd, sockaddr(address))
	})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	file.SetDeadline(time.Now().Add(patience()))
	request := slices.Clone(echo)
	if netip.MustParseAddr(to).Is6() {
		request[0] = 128
	}
	if _, err := file.Write(request); err != nil {
		t.Errorf("%s: cannot send: %v", to, err)
	}
	_, err = file.Read(make([]byte, 100))
	return err
}

func TestLoopbackIsTheAgentsOwn(t *testing.T) {
	prepare(t)
	n := listening(t, newPlan(Config{Everything: true}, true)).Namespace
	socket := raw(t, n, "127.0.0.1", unix.IPPROTO_ICMP)
	if err := sendRaw(socket, "127.0.0.1", echo); err != nil {
		t.Fatal(err)
	}
	for kind := byte(8); kind != 0; { // the request arrives, too
		packet := make([]byte, 100)
		if _, err := socket.Read(packet); err != nil {
			t.Fatalf("127.0.0.1 does not answer an echo: %v", err)
		}
		kind = packet[20]
	}
	for _, address := range []string{"127.0.0.1:4000", "127.3.2.1:4000", "[::1]:4000", "[2001:db8::11]:4000"} {
		receiver, err := datagrams(t, n, address, "")
		if err != nil {
			t.Fatal(err)
		}
		sender, err := datagrams(t, n, "", address)
		if err != nil {
			t.Fatal(err)
		}
		through(t, sender, receiver, "to myself")
	}
}

func TestMulticastAndBroadcastGoNowhere(t *testing.T) {
	prepare(t)
	ruled, free := listening(t, newPlan(Config{Everything: true}, true)).Namespace, unruled(t)
	for _, target := range []string{"224.0.0.251:5353", "239.255.255.250:1900", "255.255.255.255:67"} {
		agent, err := datagrams(t, ruled, "", target)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(agent, "ping"); !errors.Is(err, unix.EPERM) {
			t.Errorf("%s: %v, want EPERM", target, err)
		}
		agent, err = datagrams(t, free, "", target)
		if err == nil {
			_, err = io.WriteString(agent, "ping")
		}
		if err != nil {
			t.Errorf("control: %s: %v", target, err)
		}
	}
	for name, n := range map[string]*Namespace{"ruled": ruled, "free": free} {
		agent, err := datagrams(t, n, "[::]:0", "")
		if err != nil {
			t.Fatal(err)
		}
		err = control(agent, func(fd int) error {
			to := &unix.SockaddrInet6{Port: 5353, ZoneId: loopbackIndex, Addr: netip.MustParseAddr("ff02::fb").As16()}
			return unix.Sendto(fd, []byte("ping"), 0, to)
		})
		if refused := err == unix.EPERM; refused != (name == "ruled") {
			t.Errorf("ff02::fb in the %s namespace: %v", name, err)
		}
	}
}

// TestAnOddSourceHurtsNobodyElse: with IPv4 an agent may bind a foreign address, but no packet
// from it reaches the gate.
func TestAnOddSourceHurtsNobodyElse(t *testing.T) {
	prepare(t)
	w := listening(t, newPlan(Config{Everything: true}, true))
	target := netip.MustParseAddrPort("203.0.113.5:443")
	for _, from := range []string{"10.9.9.9:0", "203.0.113.5:443", "127.0.0.1:0"} {
		agent, err := datagrams(t, w.Namespace, from, "")
		if err != nil {
			t.Fatal(err)
		}
		err = control(agent, func(fd int) error { return unix.Sendto(fd, []byte(from), 0, sockaddr(target)) })
		if own := bound(t, agent).Addr().IsLoopback(); own != (err == nil) {
			t.Errorf("from %s: %v", from, err)
		}
	}
	if got := receive(t, w.at(t, KindUDP, "192.0.2.1:1")); got.text != "127.0.0.1:0" {
		t.Errorf("the gate got %+v first", got)
	}
	odd := startFrom(t, w.Namespace, "10.9.9.9:0", target)
	if _, err := connect(t, w.Namespace, target.String()); err != nil {
		t.Fatal(err)
	}
	if got := accept1(t, w.at(t, KindTCP, "192.0.2.1:1")).RemoteAddr(); got.String() == bound(t, odd).String() {
		t.Errorf("the gate accepted %s", got)
	}
}

// startFrom begins a TCP connection and does not wait for it.
func startFrom(t *testing.T, n *Namespace, from string, to netip.AddrPort) *os.File {
	t.Helper()
	var file *os.File
	err := n.do(func() (err error) {
		file, err = open(unix.SOCK_STREAM, to, "odd", func(fd int) error {
			if err := unix.Bind(fd, sockaddr(netip.MustParseAddrPort(from))); err != nil {
				return err
			}
			if err := unix.Connect(fd, sockaddr(to)); err != unix.EINPROGRESS {
				return fmt.Errorf("connect: %w", err)
			}
			return nil
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}
