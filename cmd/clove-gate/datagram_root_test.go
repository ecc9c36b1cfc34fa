//go:build root

package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"clove.run/clove/egress/dnsmsg"
	"clove.run/clove/egress/wire"
	"clove.run/clove/internal/testhost"
)

// packetFile is a datagram socket as the broker sends it.
func packetFile(t testing.TB, address string) (*os.File, netip.AddrPort) {
	t.Helper()
	conn, err := net.ListenPacket("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	file, err := conn.(*net.UDPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file, conn.LocalAddr().(*net.UDPAddr).AddrPort()
}

// connectedTo is a client that receives datagrams from address only.
func connectedTo(t testing.TB, address string, port uint16) *net.UDPConn {
	t.Helper()
	client, err := net.Dial("udp", net.JoinHostPort(address, fmt.Sprint(port)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if err := client.SetDeadline(time.Now().Add(testhost.Patience(patience))); err != nil {
		t.Fatal(err)
	}
	return client.(*net.UDPConn)
}

// TestDNSAnswersThroughTheFilters: on the only sockets that may be given a destination, for
// IPv4, IPv6, and a socket for both.
func TestDNSAnswersThroughTheFilters(t *testing.T) {
	testhost.Root(t)
	testhost.NoResidue(t, t.TempDir(), t.TempDir())
	for _, c := range []struct{ bound, asked string }{
		{"127.0.0.11:0", "127.0.0.11"}, {"0.0.0.0:0", "127.1.2.3"}, {"[::]:0", "::1"}, {"[::]:0", "127.1.2.3"},
	} {
		t.Run(c.bound+" "+c.asked, func(t *testing.T) {
			file, address := packetFile(t, c.bound)
			g := start(t)
			g.setUp(wire.Limits{}, []wire.Listener{{Kind: wire.ListenDNSUDP}}, file)
			client := connectedTo(t, c.asked, address.Port())
			packet, err := dnsmsg.Question{Name: "a.example.", Type: dnsmsg.TypeA}.Pack(false)
			if err != nil {
				t.Fatal(err)
			}
			for id := range uint16(3) {
				binary.BigEndian.PutUint16(packet, id)
				if _, err := client.Write(packet); err != nil {
					t.Fatal(err)
				}
				r := g.receive()
				if r.Lookup == nil || r.Lookup.Name != "a.example" {
					t.Fatalf("asked %+v", r)
				}
				if err := g.conn.SendAnswer(wire.Answer{ID: r.ID, Result: wire.ResultDenied}); err != nil {
					t.Fatal(err)
				}
				reply := make([]byte, dnsmsg.MaxUDPBytes)
				n, err := client.Read(reply)
				if err != nil || n < 12 || binary.BigEndian.Uint16(reply) != id || reply[3]&0xf != dnsmsg.RCodeRefused {
					t.Fatalf("%x, %v", reply[:n], err)
				}
			}
		})
	}
}

// TestAFlowThroughTheFilters: the listener's own destination is not loopback.
func TestAFlowThroughTheFilters(t *testing.T) {
	testhost.Root(t)
	testhost.NoResidue(t, t.TempDir(), t.TempDir())
	thread := inside(t)
	var file *os.File
	var port uint16
	var client *net.UDPConn
	do(t, thread, func() error {
		var address netip.AddrPort
		file, address = packetFile(t, targetAddress+":0")
		port = address.Port()
		client = connectedTo(t, targetAddress, port)
		return nil
	})
	g := start(t)
	g.setUp(wire.Limits{}, []wire.Listener{{Kind: wire.ListenUDP}}, file)
	if _, err := client.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	r := g.receive()
	if r.Flow == nil || r.Flow.Target != netip.AddrPortFrom(netip.MustParseAddr(targetAddress), port) ||
		r.Flow.Agent != client.LocalAddr().(*net.UDPAddr).AddrPort() {
		t.Fatalf("asked %+v", r)
	}
	server, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	outside, err := connectedTo(t, "127.0.0.1", server.LocalAddr().(*net.UDPAddr).AddrPort().Port()).File()
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	agent, agentAddress := packetFile(t, "127.0.0.1:0")
	back, err := connectedTo(t, "127.0.0.1", agentAddress.Port()).File()
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	if err := g.conn.SendAnswer(wire.Answer{ID: r.ID, Result: wire.ResultAllowed, Number: 1, Files: []*os.File{outside, back}}); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 100)
	n, from, err := server.ReadFrom(buffer)
	if err != nil || string(buffer[:n]) != "hello" {
		t.Fatalf("%q, %v", buffer[:n], err)
	}
	if _, err := server.WriteTo([]byte("answer"), from); err != nil {
		t.Fatal(err)
	}
	peer, err := net.FilePacketConn(agent)
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	if n, _, err = peer.ReadFrom(buffer); err != nil || string(buffer[:n]) != "answer" {
		t.Fatalf("%q, %v", buffer[:n], err)
	}
}
