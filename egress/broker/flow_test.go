package broker

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/egress/dnsmsg"
	"clove.run/clove/egress/wire"
)

var agentSocket = netip.MustParseAddrPort("127.0.0.1:40000")

func (g *fakeGate) flow(target string) wire.Answer {
	g.t.Helper()
	return g.ask(wire.Request{Flow: &wire.Flow{Agent: agentSocket, Target: netip.MustParseAddrPort(target)}})
}

// datagramServer makes target a real socket on loopback.
func (f *fixture) datagramServer(target string) *net.UDPConn {
	f.t.Helper()
	server, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { server.Close() })
	server.SetDeadline(time.Now().Add(deadline))
	f.network.lead(netip.MustParseAddrPort(target), server.LocalAddr().String())
	return server
}

func TestDatagramsNeedTheirOwnRule(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t, "udp://93.184.216.34:53", "93.184.216.35:53", "udp://ntp.example.com:123")})
	server := f.datagramServer("93.184.216.34:53")
	for _, target := range []string{"93.184.216.34:54", "93.184.216.35:53", "93.184.216.36:123", "224.0.0.251:5353", "255.255.255.255:67", "127.0.0.1:53"} {
		if answer := f.gate.flow(target); answer.Result != wire.ResultDenied || len(answer.Files) != 0 {
			t.Errorf("%s: %+v", target, answer)
		}
	}
	if d := f.last(); d.Kind != KindUDP || d.Outcome != OutcomeDenied {
		t.Errorf("decision %+v", d)
	}
	answer := f.gate.flow("93.184.216.34:53")
	if answer.Result != wire.ResultAllowed || len(answer.Files) != 2 {
		t.Fatalf("%+v", answer)
	}
	outside := f.gate.socket(answer.Files[0])
	answer.Files[1].Close()
	outside.Write([]byte("query"))
	f.network.set(func() {
		if f.network.flows[0] != agentSocket || f.network.flows[1].String() != "93.184.216.34:53" {
			t.Errorf("inside sockets for %v", f.network.flows)
		}
	})
	buffer := make([]byte, 16)
	n, from, err := server.ReadFromUDP(buffer)
	if err != nil || string(buffer[:n]) != "query" {
		t.Fatalf("%q, %v", buffer[:n], err)
	}
	server.WriteToUDP([]byte("answer"), from)
	if n, err = outside.Read(buffer); err != nil || string(buffer[:n]) != "answer" {
		t.Fatalf("%q, %v", buffer[:n], err)
	}
	f.gate.closed(answer.Number, 6, 5)
	if totals := f.broker.Totals(); totals.RxBytes != 6 || totals.TxBytes != 5 {
		t.Errorf("%+v", totals)
	}
}

func TestANameLetsDatagramsThroughByItsPin(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t, "udp://ntp.example.com:123")})
	f.datagramServer("93.184.216.36:123")
	f.resolver.set("ntp.example.com", "93.184.216.36")
	if answer := f.gate.flow("93.184.216.36:123"); answer.Result != wire.ResultDenied {
		t.Errorf("before the look-up: %+v", answer)
	}
	f.gate.lookup("ntp.example.com", dnsmsg.TypeA)
	answer := f.gate.flow("93.184.216.36:123")
	closeFiles(answer.Files)
	if answer.Result != wire.ResultAllowed {
		t.Errorf("%+v", answer)
	}
}

// TestACutFlowIsSilent: in both directions, and permanently; before the cut it is not.
func TestACutFlowIsSilent(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t, "udp://93.184.216.34:53")})
	server := f.datagramServer("93.184.216.34:53")
	answer := f.gate.flow("93.184.216.34:53")
	outside := f.gate.socket(answer.Files[0]).(*net.UDPConn)
	answer.Files[1].Close()
	buffer := make([]byte, 16)
	outside.Write([]byte("before"))
	_, from, err := server.ReadFromUDP(buffer)
	if err != nil {
		t.Fatal(err)
	}
	f.broker.Replace(rulesOf(t, "api.example.com"))
	if d := f.last(); d.Outcome != OutcomeCut || d.Kind != KindUDP || d.Reason != ReasonReplaced {
		t.Errorf("decision %+v", d)
	}
	if _, err := outside.Write([]byte("after")); !errors.Is(err, unix.EPIPE) {
		t.Errorf("sending: %v, want EPIPE", err)
	}
	raw, err := outside.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	server.WriteToUDP([]byte("back"), from) // loopback has delivered it when this returns
	raw.Control(func(fd uintptr) {
		if n, _, err := unix.Recvfrom(int(fd), buffer, unix.MSG_DONTWAIT); n > 0 {
			t.Errorf("received %q, %v", buffer[:n], err)
		}
		if err := unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0); err == nil {
			t.Error("the filter came off")
		}
	})
}

// TestNoFlowSendsToABroadcastAddress: the control is a socket of package net, which may.
func TestNoFlowSendsToABroadcastAddress(t *testing.T) {
	t.Parallel()
	const broadcast = "127.255.255.255:9"
	if file, err := ownNetwork.dial(t.Context(), "udp4", netip.MustParseAddrPort(broadcast)); !errors.Is(err, unix.EACCES) {
		t.Errorf("as dialled: %v, %v", file, err)
	}
	conn, err := net.Dial("udp4", broadcast)
	if err != nil {
		t.Fatalf("control: %v", err)
	}
	conn.Close()
}

func TestAPublishedPortLeadsIn(t *testing.T) {
	t.Parallel()
	inside, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	file, err := listener.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	f := serve(t, Config{Rules: rulesOf(t, "api.example.com"), Listeners: []Listener{{Kind: wire.ListenPublish, Port: 8080, File: file}}})
	f.network.set(func() { f.network.inside = inside.Addr().String() })
	if setup := f.gate.setup; len(setup.Files) != 1 || setup.Setup.Listeners[0] != (wire.Listener{Kind: wire.ListenPublish, Port: 8080}) {
		t.Fatalf("setup %+v", setup.Setup)
	}
	f.gate.lookup("localhost", dnsmsg.TypeA) // after its answer the setup is done
	if err := file.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the broker kept the listener: %v", err)
	}
	answer := f.gate.ask(wire.Request{Enter: &wire.Enter{Port: 8080, Client: netip.MustParseAddrPort("127.0.0.1:5")}})
	if answer.Result != wire.ResultAllowed || len(answer.Files) != 1 {
		t.Fatalf("%+v", answer)
	}
	conn := f.gate.socket(answer.Files[0])
	agent, err := inside.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	conn.Write([]byte("abc"))
	alive(t, agent, conn)
	f.gate.closed(answer.Number, 3, 1)
	if totals := f.broker.Totals(); totals.RxBytes != 3 || totals.TxBytes != 1 {
		t.Errorf("towards the agent 3, from it 1: %+v", totals)
	}
	if d := f.last(); d.Kind != KindDNS {
		t.Errorf("last %+v", d)
	}
	f.network.set(func() { f.network.inside = "127.0.0.1:1" })
	if answer := f.gate.ask(wire.Request{Enter: &wire.Enter{Port: 8080, Client: netip.MustParseAddrPort("127.0.0.1:5")}}); answer.Result != wire.ResultUnreachable {
		t.Errorf("no process listens inside: %+v", answer)
	}
}
