//go:build root

package netns

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"clove.run/clove/internal/ocitest"
)

// TestAForgottenQuestionOpensNoWay: the container fills the connection tracking table until
// the entry of the gate's query is dropped. The answer then looks like a connection that began
// outside, and once the gate's port is free the container could use that connection.
func TestAForgottenQuestionOpensNoWay(t *testing.T) {
	prepare(t)
	for server, gate := range map[string]string{
		ocitest.AllowedAddress + ":53":  "192.0.2.1:53",
		"[" + ocitest.Allowed6 + "]:53": "[2001:db8::1]:53",
	} {
		w, network := engineWorld(t, true)
		s := listenOutside(t, network, server)
		if err := s.attack(t, w, network); err != nil {
			t.Fatal(err)
		}
		if got := receive(t, w.at(t, KindDNSUDP, gate)); got.text != "attack" || got.target.String() != server {
			t.Errorf("%s: the gate got %+v", server, got)
		}
		w.allowAnswers(t, "arrive", "divert") // the last chain alone must prevent it
		if err := s.attack(t, w, network); !errors.Is(err, unix.EPERM) {
			t.Errorf("%s: it was sent: %v", server, err)
		}
		w.allowAnswers(t, "arrive", "divert", "leave") // control
		if err := s.attack(t, w, network); err != nil {
			t.Fatal(err)
		}
		if got, _ := s.hear(t); got != "attack" {
			t.Errorf("%s heard %q without the rules", server, got)
		}
	}
}

// TestWhatIsForTheGateBeganInside: also without that entry; the gate's connections to other
// targets than name servers cannot be used either.
func TestWhatIsForTheGateBeganInside(t *testing.T) {
	prepare(t)
	w, network := engineWorld(t, true)
	s := listenOutside(t, network, ocitest.AllowedAddress+":7001")
	if err := s.attack(t, w, network); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, w.at(t, KindUDP, "192.0.2.1:1")); got.text != "attack" || got.target != s.at {
		t.Errorf("the gate got %+v", got)
	}
	w.allowAnswers(t, "arrive") // control
	if err := s.attack(t, w, network); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.hear(t); got != "attack" {
		t.Errorf("the server heard %q without the rule", got)
	}
}

// allowAnswers removes from chains the rules that drop answers in a connection that seems to
// have begun outside.
func (w *world) allowAnswers(t *testing.T, names ...string) {
	t.Helper()
	chains := w.plan.chains()
	for i, c := range chains {
		if !slices.Contains(names, c.name) {
			continue
		}
		before := len(c.rules)
		chains[i].rules = slices.DeleteFunc(c.rules, func(r rule) bool {
			return r.port == dnsPort && (r.action == divert || r.action == drop) || r.match.fresh && r.match.receiver != 0
		})
		if len(chains[i].rules) == before {
			t.Fatalf("chain %s has no such rule", c.name)
		}
	}
	if err := w.do(func() error { return setRules(chains, false) }); err != nil {
		t.Fatal(err)
	}
}

// asked is a server that the gate queries.
type asked struct {
	net.PacketConn
	at netip.AddrPort
}

func listenOutside(t *testing.T, network *ocitest.Network, at string) asked {
	t.Helper()
	s := asked{at: netip.MustParseAddrPort(at)}
	network.DoOutside(func() (err error) { s.PacketConn, err = net.ListenPacket("udp", at); return err })
	t.Cleanup(func() { s.Close() })
	return s
}

func (s asked) hear(t *testing.T) (string, net.Addr) {
	t.Helper()
	buffer := make([]byte, 100)
	s.SetReadDeadline(time.Now().Add(patience()))
	n, from, err := s.ReadFrom(buffer)
	if err != nil {
		t.Fatal(err)
	}
	return string(buffer[:n]), from
}

// attack has the gate query the server and get its answer, with an empty connection tracking
// table in between, and then sends from the gate's address; the error is that of this send.
func (s asked) attack(t *testing.T, w *world, network *ocitest.Network) error {
	t.Helper()
	gate := gateSocket(t, w, s.at)
	io.WriteString(gate, "question")
	_, from := s.hear(t)
	network.Do(func() error { return netlink.ConntrackTableFlush(netlink.ConntrackTable) })
	s.WriteTo([]byte("answer"), from)
	if _, err := gate.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	gate.Close()
	var container net.PacketConn
	network.Do(func() (err error) { container, err = net.ListenPacket("udp", from.String()); return err })
	defer container.Close()
	_, err := container.WriteTo([]byte("attack"), net.UDPAddrFromAddrPort(s.at))
	return err
}

// gateSocket returns a socket of the gate to the outside.
func gateSocket(t *testing.T, w *world, to netip.AddrPort) net.Conn {
	t.Helper()
	domain := unix.AF_INET
	if to.Addr().Is6() {
		domain = unix.AF_INET6
	}
	fd, err := w.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "gate")
	if err := unix.Connect(fd, sockaddr(to)); err != nil {
		t.Fatal(err)
	}
	return conn(t, file)
}
