//go:build root

package netns

import (
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// A client that has closed its socket, or has died, is told from one that has only ended its own direction: on the wire both
// send the same FIN. The control is the half-closed one, which still has its socket.
func TestAClosedClientIsToldFromAHalfClosedOne(t *testing.T) {
	prepare(t)
	w := listening(t, newPlan(Config{Everything: true}, true))
	for _, c := range targets[:3] {
		conn, err := connect(t, w.Namespace, c.target)
		if err != nil {
			t.Fatal(err)
		}
		gate := accept1(t, w.at(t, c.tcp, c.socket))
		client, target := gate.RemoteAddr().(*net.TCPAddr).AddrPort(), gate.LocalAddr().(*net.TCPAddr).AddrPort()
		has := func(want bool, what string) {
			t.Helper()
			if got, err := w.HasClient(unix.IPPROTO_TCP, client, target); got != want || err != nil {
				t.Errorf("%s, %s: %v, %v", c.target, what, got, err)
			}
		}
		has(true, "open")
		through(t, conn, gate, "request")
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if n, err := gate.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Fatalf("%d, %v", n, err)
		}
		has(true, "half-closed")
		conn.Close()
		has(false, "closed")
		gate.Close()
		has(false, "both closed")
	}
	socket, err := datagrams(t, w.Namespace, "0.0.0.0:0", "")
	if err != nil {
		t.Fatal(err)
	}
	client, target := netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), bound(t, socket).Port()), netip.MustParseAddrPort("203.0.113.5:443")
	if got, err := w.HasClient(unix.IPPROTO_UDP, client, target); !got || err != nil {
		t.Errorf("udp: %v, %v", got, err)
	}
	socket.Close()
	if got, err := w.HasClient(unix.IPPROTO_UDP, client, target); got || err != nil {
		t.Errorf("udp, closed: %v, %v", got, err)
	}
}
