//go:build root

package netns

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// targets are addresses of every kind, and the gate's socket that gets them.
var targets = []struct{ tcp, udp, socket, target string }{
	{KindTCP, KindUDP, "192.0.2.1:1", "203.0.113.5:443"},
	{KindTCP, KindUDP, "192.0.2.1:1", "10.1.2.3:5432"},
	{KindTCP, KindUDP, "192.0.2.1:1", "169.254.169.254:80"},
	{KindTCP, KindUDP, "192.0.2.1:1", "240.0.0.1:8000"},
	{KindTCP, KindUDP, "192.0.2.1:1", "192.0.2.1:1"}, // the address of the gate's own socket is a target like any other
	{KindTCP, KindUDP, "192.0.2.1:1", "192.0.2.1:2"},
	{KindDNSTCP, KindDNSUDP, "192.0.2.1:53", "203.0.113.5:53"},
	{KindDNSTCP, KindDNSUDP, "192.0.2.1:53", "192.0.2.1:53"},
	{KindDNSTCP, KindDNSUDP, "192.0.2.1:53", "127.0.0.11:53"},
	{KindTCP, KindUDP, "[2001:db8::1]:1", "[2620:fe::fe]:443"},
	{KindTCP, KindUDP, "[2001:db8::1]:1", "[fd00::7]:5432"},
	{KindTCP, KindUDP, "[2001:db8::1]:1", "[2001:db8::1]:1"},
	{KindDNSTCP, KindDNSUDP, "[2001:db8::1]:53", "[2620:fe::fe]:53"},
}

func TestEveryConnectionComesToTheGate(t *testing.T) {
	prepare(t)
	w := listening(t, newPlan(Config{Everything: true}, true))
	bare := made(t, Plan{})
	for _, c := range targets {
		t.Run(c.target, func(t *testing.T) {
			// Control: without the plan they do not reach the gate.
			if c, err := connect(t, bare, c.target); err == nil {
				t.Errorf("a namespace without a plan reached %s", c.RemoteAddr())
			}
			agent, err := connect(t, w.Namespace, c.target)
			if err != nil {
				t.Fatal(err)
			}
			gate := accept1(t, w.at(t, c.tcp, c.socket))
			if got := gate.LocalAddr().String(); got != c.target {
				t.Errorf("arrived for %s", got)
			}
			if got := gate.RemoteAddr().String(); got != agent.LocalAddr().String() {
				t.Errorf("arrived from %s, but the agent is %s", got, agent.LocalAddr())
			}
			through(t, agent, gate, "question")
			through(t, gate, agent, "answer")
		})
	}
}

// accept1 takes one connection from a gate's listener.
func accept1(t *testing.T, file *os.File) net.Conn {
	t.Helper()
	listener, err := net.FileListener(file)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if err := listener.(*net.TCPListener).SetDeadline(time.Now().Add(patience())); err != nil {
		t.Fatal(err)
	}
	c, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience())); err != nil {
		t.Fatal(err)
	}
	return c
}

func through(t *testing.T, from io.Writer, to io.Reader, text string) {
	t.Helper()
	if _, err := io.WriteString(from, text); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, len(text)+1)
	if n, err := to.Read(buffer); string(buffer[:n]) != text {
		t.Fatalf("%q came through as %q, %v", text, buffer[:n], err)
	}
}

func TestEveryDatagramComesToTheGate(t *testing.T) {
	prepare(t)
	w := listening(t, newPlan(Config{Everything: true}, true))
	bare := made(t, Plan{})
	for _, c := range targets {
		t.Run(c.target, func(t *testing.T) {
			if !strings.HasPrefix(c.target, "127.") { // control, as above
				if _, err := datagrams(t, bare, "", c.target); !errors.Is(err, unix.ENETUNREACH) && !errors.Is(err, unix.EADDRNOTAVAIL) {
					t.Errorf("without a plan: %v", err)
				}
			}
			agent, err := datagrams(t, w.Namespace, "", c.target)
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(agent, "first")
			socket := w.at(t, c.udp, c.socket)
			got := receive(t, socket)
			if got.text != "first" || got.target.String() != c.target || got.from != bound(t, agent) {
				t.Fatalf("received %+v", got)
			}
			if c.udp != KindDNSUDP {
				return // others are answered by flows: a gate's socket sends from its own port only
			}
			answerFrom(t, socket, got)
			buffer := make([]byte, 10)
			if n, err := agent.Read(buffer); string(buffer[:n]) != "answer" {
				t.Errorf("answered %q, %v", buffer[:n], err)
			}
		})
	}
}

// answerFrom sends with the query's target as source address, ip(7) and ipv6(7), which a
// transparent socket may use.
func answerFrom(t *testing.T, socket *os.File, question received) {
	t.Helper()
	var oob []byte
	if a := question.target.Addr(); a.Is4() {
		oob = unix.PktInfo4(&unix.Inet4Pktinfo{Spec_dst: a.As4()})
	} else {
		oob = unix.PktInfo6(&unix.Inet6Pktinfo{Addr: a.As16()})
	}
	err := control(socket, func(fd int) error {
		return unix.Sendmsg(fd, []byte("answer"), oob, sockaddr(question.from), 0)
	})
	if err != nil {
		t.Fatalf("cannot answer as %s: %v", question.target, err)
	}
}

func TestAFlowTakesOverFromTheSocketForAll(t *testing.T) {
	prepare(t)
	w := listening(t, newPlan(Config{Everything: true}, true))
	for _, c := range []struct{ from, target, socket string }{
		{"127.0.0.1:0", "203.0.113.5:4433", "192.0.2.1:1"},
		{"[::1]:0", "[2620:fe::fe]:4433", "[2001:db8::1]:1"},
	} {
		target := netip.MustParseAddrPort(c.target)
		agent, flow := flowTo(t, w, c.from, target)
		neighbour, _ := flowTo(t, w, c.from, target) // a second flow to the same target
		for _, a := range []*os.File{agent, neighbour} {
			send(t, a, target, "next of "+bound(t, a).String())
		}
		if got := receive(t, flow); got.text != "next of "+bound(t, agent).String() {
			t.Errorf("the flow got %q", got.text)
		}
		through(t, flow, agent, "answer")
		// For other targets, datagrams of the same socket still go through the gate.
		other := netip.AddrPortFrom(target.Addr(), 999)
		send(t, agent, other, "elsewhere")
		if got := receive(t, w.at(t, KindUDP, c.socket)); got.text != "elsewhere" || got.target != other {
			t.Errorf("the socket for all got %+v", got)
		}
	}
}

func flowTo(t *testing.T, w *world, from string, target netip.AddrPort) (agent, flow *os.File) {
	t.Helper()
	agent, err := datagrams(t, w.Namespace, from, "")
	if err != nil {
		t.Fatal(err)
	}
	flow, err = w.Flow(bound(t, agent), target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { flow.Close() })
	if err := flow.SetDeadline(time.Now().Add(patience())); err != nil {
		t.Fatal(err)
	}
	return agent, flow
}

func send(t *testing.T, from *os.File, to netip.AddrPort, text string) {
	t.Helper()
	if err := control(from, func(fd int) error { return unix.Sendto(fd, []byte(text), 0, sockaddr(to)) }); err != nil {
		t.Fatal(err)
	}
}

// TestFragmentsArriveWhole: an IPv6 datagram can be larger than loopback's MTU.
func TestFragmentsArriveWhole(t *testing.T) {
	prepare(t)
	w := listening(t, newPlan(Config{Everything: true}, true))
	agent, err := datagrams(t, w.Namespace, "", "[2620:fe::fe]:443")
	if err != nil {
		t.Fatal(err)
	}
	const length = 65520 // with 48 bytes of headers it exceeds the MTU of 65536
	if _, err := agent.Write(make([]byte, length)); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, w.at(t, KindUDP, "[2001:db8::1]:1")); len(got.text) != length || got.target.Port() != 443 {
		t.Errorf("%d bytes for %s", len(got.text), got.target)
	}
}

func TestWhatIsNoFlow(t *testing.T) {
	prepare(t)
	w := listening(t, newPlan(Config{Everything: true}, true))
	four, six := netip.MustParseAddrPort("127.0.0.1:5000"), netip.MustParseAddrPort("[2620:fe::fe]:443")
	for _, c := range [][2]netip.AddrPort{{four, six}, {six, four}, {four, {}}, {{}, {}}} {
		if file, err := w.Flow(c[0], c[1]); err == nil {
			file.Close()
			t.Errorf("a flow between %s and %s", c[0], c[1])
		}
	}
}
