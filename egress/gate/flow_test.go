package gate

import (
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"
	"time"

	"clove.run/clove/egress/wire"
)

// udpPair returns a connected socket for the gate, and its peer.
func udpPair(t *testing.T) (*os.File, *net.UDPConn) {
	t.Helper()
	peer, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	check(t, err)
	near, err := net.DialUDP("udp4", nil, peer.LocalAddr().(*net.UDPAddr))
	check(t, err)
	file, err := near.File()
	check(t, err)
	near.Close()
	check(t, peer.SetDeadline(time.Now().Add(patience)))
	t.Cleanup(func() { peer.Close() })
	return file, peer
}

func expectDatagram(t *testing.T, from *net.UDPConn, want string) netip.AddrPort {
	t.Helper()
	buffer := make([]byte, datagramBytes)
	n, sender, err := from.ReadFromUDPAddrPort(buffer)
	if err != nil || string(buffer[:n]) != want {
		t.Fatalf("%q, %v; want %q", buffer[:n], err, want)
	}
	return sender
}

var flowPair = pair{netip.MustParseAddrPort("127.0.0.1:40000"), netip.MustParseAddrPort("192.0.2.1:123")}

// TestAFlowGoesBothWays: datagrams from before the answer are not lost, an empty datagram
// counts as one, and the end is reported with the number of bytes.
func TestAFlowGoesBothWays(t *testing.T) {
	t.Parallel()
	outsideFile, server := udpPair(t)
	insideFile, agent := udpPair(t)
	ask := make(chan struct{})
	const rx, tx = 6, 5 + 17 + 15 // the bytes that the test sends until the budget is used up
	s, b := begin(t, wire.Limits{Bytes: rx + tx}, func(r wire.Request) wire.Answer {
		<-ask
		return wire.Answer{Result: wire.ResultAllowed, Number: 3, Files: []*os.File{outsideFile, insideFile}}
	})
	s.flows.datagram(flowPair, []byte("first"))
	s.flows.datagram(flowPair, nil)
	close(ask)
	gateOutside := expectDatagram(t, server, "first")
	expectDatagram(t, server, "")
	if r := get(t, b.asked); r.Flow.Agent != flowPair.agent || r.Flow.Target != flowPair.target || len(b.asked) != 0 {
		t.Errorf("%+v, and %d more", r.Flow, len(b.asked))
	}
	_, err := server.WriteToUDPAddrPort([]byte("answer"), gateOutside)
	check(t, err)
	gateInside := expectDatagram(t, agent, "answer")
	_, err = agent.WriteToUDPAddrPort([]byte("by its own socket"), gateInside)
	check(t, err)
	expectDatagram(t, server, "by its own socket")
	s.flows.datagram(flowPair, []byte("by the listener"))
	expectDatagram(t, server, "by the listener")
	_, err = agent.WriteToUDPAddrPort([]byte("too much"), gateInside)
	check(t, err)
	if got := get(t, b.closed); got != (wire.Closed{Number: 3, RxBytes: rx, TxBytes: tx}) {
		t.Errorf("%+v", got)
	}
	if got := get(t, b.refused); got.Reason != wire.ReasonBytes || !got.UDP {
		t.Errorf("%+v", got)
	}
}

// TestADeniedFlowIsAskedForOnce: for a while, for each pair of addresses.
func TestADeniedFlowIsAskedForOnce(t *testing.T) {
	t.Parallel()
	s, b := begin(t, wire.Limits{}, func(wire.Request) wire.Answer { return wire.Answer{Result: wire.ResultDenied} })
	other := flowPair
	other.target = netip.MustParseAddrPort("192.0.2.2:123")
	for range 1000 {
		s.flows.datagram(flowPair, []byte("x"))
	}
	get(t, b.asked)
	s.flows.datagram(other, []byte("x"))
	if r := get(t, b.asked); r.Flow.Target != other.target {
		t.Errorf("asked for %s again", r.Flow.Target)
	}
	if n := s.limits.open.Load(); n > 2 {
		t.Errorf("%d are open", n)
	}
}

func TestDenialsAreForgotten(t *testing.T) {
	t.Parallel()
	s := &server{flows: newFlows(nil, nil, nil)}
	for i := range uint16(3 * denialEntries) {
		s.flows.deny(pair{target: netip.AddrPortFrom(flowPair.target.Addr(), i)})
		if n := len(s.flows.denied); n > denialEntries {
			t.Fatalf("%d are remembered", n)
		}
	}
}

func TestFlowsCountAgainstTheLimits(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	s, b := begin(t, wire.Limits{Connections: 1}, func(wire.Request) wire.Answer { <-hold; return wire.Answer{} })
	defer close(hold)
	other := flowPair
	other.target = netip.MustParseAddrPort("192.0.2.2:123")
	s.flows.datagram(flowPair, []byte("x"))
	s.flows.datagram(other, []byte("x"))
	if got := get(t, b.refused); got.Target != other.target || got.Reason != wire.ReasonConnections {
		t.Errorf("%+v", got)
	}
}

// TestIdleFlowsEnd: a flow expires after its last datagram and a time that depends on whether
// anything was answered.
func TestIdleFlowsEnd(t *testing.T) {
	t.Parallel()
	f := &flow{began: time.Now()}
	f.last.Store(int64(time.Minute))
	if got := f.expiry().Sub(f.began); got != time.Minute+flowUnanswered {
		t.Error(got)
	}
	f.answered.Store(true)
	if got := f.expiry().Sub(f.began); got != time.Minute+flowIdle {
		t.Error(got)
	}
	s, _ := begin(t, wire.Limits{}, nil)
	f.began = time.Now().Add(-time.Hour)
	outsideFile, _ := udpPair(t)
	insideFile, _ := udpPair(t)
	from, to, err := twoSockets([]*os.File{outsideFile, insideFile})
	check(t, err)
	done := make(chan struct{})
	go func() { defer close(done); s.flows.passAll(f, from, to, &f.traffic.rx, func() {}) }()
	get(t, done)
}

// TestWhatWaitsForTheBrokerIsBounded: many flows at once, each with the longest datagrams,
// while the broker does not answer. When a flow is denied, its share is free again.
func TestWhatWaitsForTheBrokerIsBounded(t *testing.T) {
	t.Parallel()
	ask := make(chan struct{})
	s, b := begin(t, wire.Limits{}, func(wire.Request) wire.Answer {
		<-ask
		return wire.Answer{Result: wire.ResultDenied}
	})
	const flows, size = 100, 60000
	p := flowPair
	for range flows {
		p.agent = netip.AddrPortFrom(p.agent.Addr(), p.agent.Port()+1)
		for range flowEarly {
			s.flows.datagram(p, make([]byte, size))
		}
	}
	if held := s.flows.early.Load(); held > earlyBytes || held < earlyBytes-size {
		t.Errorf("%d bytes wait, want up to %d", held, earlyBytes)
	}
	close(ask)
	for range flows {
		get(t, b.asked)
	}
	for began := time.Now(); s.flows.early.Load() != 0; runtime.Gosched() {
		if time.Since(began) > patience {
			t.Fatalf("%d bytes still wait", s.flows.early.Load())
		}
	}
}
