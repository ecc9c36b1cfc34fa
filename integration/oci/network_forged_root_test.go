//go:build root

package oci

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"clove.run/clove/internal/ocitest"
)

// TestAnswersCannotBeForgedInside: before the IPv6 name server answers, a process in the
// container's network sends an answer in its name, with the right id and port.
func TestAnswersCannotBeForgedInside(t *testing.T) {
	n := newNode(t)
	n.serve()
	const server = "fd77::1"
	var outside net.PacketConn
	n.network.DoOutside(func() (err error) {
		outside, err = net.ListenPacket("udp", net.JoinHostPort(server, "53"))
		return err
	})
	t.Cleanup(func() { outside.Close() })
	go answerTwice(t, n, outside)
	for _, row := range []struct {
		annotations []string
		want        string
	}{{allowing("allowed.test"), ocitest.AllowedAddress}, {nil, ocitest.OtherAddress}} { // the second is the control
		script := "nslookup -type=a allowed.test | grep -o '44.*'"
		got := n.Do("run", "--bundle", n.bundle(server, script, n.in(row.annotations...)), "one")
		if got.Status != 0 || strings.TrimSpace(got.Out) != row.want {
			t.Errorf("%v: %+v", row.annotations, got)
		}
	}
}

// answerTwice answers each query from inside first, until conn is closed.
func answerTwice(t *testing.T, n *node, conn net.PacketConn) {
	buffer := make([]byte, 1500)
	for {
		length, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		question := new(dns.Msg)
		if err := question.Unpack(buffer[:length]); err != nil || len(question.Question) != 1 {
			t.Errorf("%v, %v", err, question)
			continue
		}
		if question.Question[0].Qtype != dns.TypeA {
			continue
		}
		n.network.Do(func() error {
			return forge(conn.LocalAddr().String(), from.String(), packed(t, question, ocitest.OtherAddress))
		})
		if _, err := conn.WriteTo(packed(t, question, ocitest.AllowedAddress), from); err != nil {
			t.Error(err)
		}
	}
}

// packed returns an answer with TTL 0.
func packed(t *testing.T, question *dns.Msg, address string) []byte {
	reply := new(dns.Msg).SetReply(question)
	reply.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: question.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET}, A: net.ParseIP(address)}}
	text, err := reply.Pack()
	if err != nil {
		t.Error(err)
	}
	return text
}

// forge sends a datagram with another source address, without any privilege.
func forge(from, to string, text []byte) error {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	const freebind = 78 // IPV6_FREEBIND of linux/in6.h
	if err := unix.SetsockoptInt(fd, unix.SOL_IPV6, freebind, 1); err != nil {
		return err
	}
	address := func(text string) *unix.SockaddrInet6 {
		at := netip.MustParseAddrPort(text)
		return &unix.SockaddrInet6{Addr: at.Addr().As16(), Port: int(at.Port())}
	}
	if err := unix.Bind(fd, address(from)); err != nil {
		return err
	}
	return unix.Sendto(fd, text, 0, address(to))
}
