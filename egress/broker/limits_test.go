package broker

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/egress/dnsmsg"
	"clove.run/clove/egress/wire"
)

// TestConnectionsAreCountedUntilTheyAreClosed: a gate that closes a socket without reporting
// it gains nothing.
func TestConnectionsAreCountedUntilTheyAreClosed(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t, "93.184.216.34:22", "udp://93.184.216.34:53"), Limits: wire.Limits{Connections: 2}})
	f.leadsTo("93.184.216.34:22")
	f.datagramServer("93.184.216.34:53")
	first, conn := f.gate.connected("93.184.216.34:22", "")
	conn.Close()
	flow := f.gate.flow("93.184.216.34:53")
	closeFiles(flow.Files)
	for range 2 {
		if answer := f.gate.open("93.184.216.34:22", ""); answer.Result != wire.ResultDenied {
			t.Fatalf("a third: %+v", answer)
		}
	}
	if d := f.last(); d.Reason != string(wire.ReasonConnections) {
		t.Errorf("decision %+v", d)
	}
	f.gate.closed(first.Number, 0, 0)
	f.gate.connected("93.184.216.34:22", "")
	if totals := f.broker.Totals(); totals.Connections != 3 || totals.PeakOpen != 2 || totals.Refused != 2 {
		t.Errorf("%+v", totals)
	}
}

func TestADialThatFailsGivesItsPlaceBack(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t, "93.184.216.0/24:22", "udp://93.184.216.34:53"), Limits: wire.Limits{Connections: 1}})
	f.leadsTo("93.184.216.34:22")
	for range 3 {
		if answer := f.gate.open("93.184.216.35:22", ""); answer.Result != wire.ResultUnreachable {
			t.Fatalf("%+v", answer)
		}
		if answer := f.gate.flow("93.184.216.34:53"); answer.Result != wire.ResultUnreachable {
			t.Fatalf("%+v", answer)
		}
	}
	f.gate.connected("93.184.216.34:22", "")
}

func TestNewConnectionsHaveAPace(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t, "93.184.216.34:22"), Limits: wire.Limits{PerSecond: 2}})
	f.leadsTo("93.184.216.34:22")
	burst := func() (opened int) {
		for range 10 {
			answer := f.gate.open("93.184.216.34:22", "")
			closeFiles(answer.Files)
			if answer.Result == wire.ResultAllowed {
				opened++
			}
		}
		return opened
	}
	if n := burst(); n != 4 { // twice the rate at first
		t.Errorf("%d at once", n)
	}
	if d := f.last(); d.Reason != string(wire.ReasonRate) {
		t.Errorf("decision %+v", d)
	}
	f.clock.advance(time.Second)
	if n := burst(); n != 2 {
		t.Errorf("%d after a second", n)
	}
}

// TestTheKernelCountsTheBytes: whatever the gate reports, and all connections end when the
// limit is reached. The control has one byte less.
func TestTheKernelCountsTheBytes(t *testing.T) {
	t.Parallel()
	const limit = 3000
	f := serve(t, Config{Rules: rulesOf(t, "93.184.216.34:22"), Limits: wire.Limits{Bytes: limit}})
	servers := f.leadsTo("93.184.216.34:22")
	first, conn := f.gate.connected("93.184.216.34:22", "")
	peer := <-servers
	conn.Write(make([]byte, 1000))
	io.ReadFull(peer, make([]byte, 1000))
	f.gate.closed(first.Number, 0, 0) // a false report
	if d := f.log()[1]; d.Outcome != OutcomeEnded || d.TxBytes != 1000 || d.RxBytes != 0 {
		t.Errorf("decision %+v", d)
	}
	_, conn = f.gate.connected("93.184.216.34:22", "")
	peer = <-servers
	conn.Write(make([]byte, 1000))
	io.ReadFull(peer, make([]byte, 1000))
	peer.Write(make([]byte, 1000))
	io.ReadFull(conn, make([]byte, 1000))
	f.broker.holdBytes()
	if totals := f.broker.Totals(); totals.TxBytes != 2000 || totals.RxBytes != 1000 {
		t.Fatalf("%+v", totals)
	}
	alive(t, conn, peer) // the limit is reached and not exceeded; the next byte exceeds it
	f.broker.holdBytes()
	reset(t, peer)
	if answer := f.gate.open("93.184.216.34:22", ""); answer.Result != wire.ResultDenied {
		t.Errorf("a new one: %+v", answer)
	}
	reasons := map[Outcome]int{}
	for _, d := range f.log() {
		if d.Reason == string(wire.ReasonBytes) {
			reasons[d.Outcome]++
		}
	}
	if reasons[OutcomeCut] != 1 || reasons[OutcomeDenied] != 2 {
		t.Errorf("decisions %v", reasons)
	}
}

// TestBytesAreWatchedByItself: this test does not call holdBytes.
func TestBytesAreWatchedByItself(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t, "93.184.216.34:22"), Limits: wire.Limits{Bytes: 10}})
	servers := f.leadsTo("93.184.216.34:22")
	_, conn := f.gate.connected("93.184.216.34:22", "")
	peer := <-servers
	conn.Write(make([]byte, 11))
	io.ReadFull(peer, make([]byte, 11))
	reset(t, peer)
}

// TestAFINIsNoByte: a connection that ends with FIN counts only the bytes that it carried.
func TestAFINIsNoByte(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t, "93.184.216.34:22")})
	servers := f.leadsTo("93.184.216.34:22")
	answer, conn := f.gate.connected("93.184.216.34:22", "")
	peer := <-servers
	conn.Write(make([]byte, 7))
	conn.(interface{ CloseWrite() error }).CloseWrite()
	io.ReadAll(peer)
	peer.Write(make([]byte, 5))
	peer.Close()
	io.ReadAll(conn)
	conn.Close()
	f.gate.closed(answer.Number, 5, 7)
	if totals := f.broker.Totals(); totals.RxBytes != 5 || totals.TxBytes != 7 {
		t.Errorf("%+v", totals)
	}
}

func TestTheGatesEndIsToldAndClosesEverything(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t, "93.184.216.34:22")})
	servers := f.leadsTo("93.184.216.34:22")
	f.gate.connected("93.184.216.34:22", "")
	peer := <-servers
	f.gate.conn.Close()
	if err := f.result(); !errors.Is(err, ErrGateGone) {
		t.Errorf("Serve: %v", err)
	}
	reset(t, peer) // although this process, as the gate, has the socket open too
	if d := f.last(); d.Outcome != OutcomeCut || d.Reason != ReasonOver {
		t.Errorf("decision %+v", d)
	}
}

// TestSoManyRequestsAreInWorkAndNoMore: further requests wait, and are answered.
func TestSoManyRequestsAreInWorkAndNoMore(t *testing.T) {
	t.Parallel()
	const asked = maxAtOnce + 40
	f := serve(t, Config{Rules: rulesOf(t, "93.184.216.34:22")})
	begun, gate := make(chan struct{}, asked), make(chan struct{})
	f.network.set(func() { f.network.begun, f.network.gate = begun, gate })
	f.network.lead(netip.MustParseAddrPort("93.184.216.34:22"), held)
	waiting := make(chan (<-chan wire.Answer), asked)
	go func() { // the channel becomes full, which blocks this as it would a gate
		defer close(waiting)
		for range asked {
			w, err := f.gate.begin(wire.Request{Open: &wire.Open{Target: netip.MustParseAddrPort("93.184.216.34:22")}})
			if err != nil {
				t.Error(err)
				return
			}
			waiting <- w
		}
	}()
	for range maxAtOnce {
		<-begun
	}
	close(gate)
	for w := range waiting {
		if answer := <-w; answer.Result != wire.ResultUnreachable {
			t.Errorf("%+v", answer)
		}
	}
	f.network.set(func() {
		if f.network.peak != maxAtOnce {
			t.Errorf("%d at once", f.network.peak)
		}
	})
}

func TestTheEndOfTheContextEndsDialsToo(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t, "93.184.216.34:22")})
	f.network.lead(netip.MustParseAddrPort("93.184.216.34:22"), blackhole)
	if _, err := f.gate.begin(wire.Request{Open: &wire.Open{Target: netip.MustParseAddrPort("93.184.216.34:22")}}); err != nil {
		t.Fatal(err)
	}
	f.gate.lookup("localhost", dnsmsg.TypeA)
	f.stop()
	if err := f.result(); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// TestACrowdHasSmallBuffers: outside too, whatever the gate does with its own.
func TestACrowdHasSmallBuffers(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t, "93.184.216.34:22")})
	servers := f.leadsTo("93.184.216.34:22")
	for n := range wire.LargeBuffers + 2 {
		_, conn := f.gate.connected("93.184.216.34:22", "")
		<-servers
		small := func(option int) bool {
			size, err := 0, error(nil)
			raw, _ := conn.(*net.TCPConn).SyscallConn()
			raw.Control(func(fd uintptr) { size, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, option) })
			if err != nil {
				t.Fatal(err)
			}
			return size == 2*wire.SmallBufferBytes
		}
		if want := n >= wire.LargeBuffers; small(unix.SO_SNDBUF) != want || want && !small(unix.SO_RCVBUF) {
			t.Errorf("connection %d: small buffers %v", n+1, !want)
		}
	}
}

// TestNoDescriptorIsLeft: after connections with every kind of end.
func TestNoDescriptorIsLeft(t *testing.T) {
	run := func(t *testing.T) {
		f := serve(t, Config{Rules: rulesOf(t, "db.example.com:22", "93.184.216.0/24:80", "udp://93.184.216.34:53"), Limits: wire.Limits{Connections: 40}})
		f.resolver.set("db.example.com", "93.184.216.34", "93.184.216.35")
		f.network.lead(netip.MustParseAddrPort("93.184.216.34:22"), blackhole)
		servers := f.leadsTo("93.184.216.35:22")
		f.datagramServer("93.184.216.34:53")
		f.gate.lookup("db.example.com", dnsmsg.TypeA)
		for i := range 2 {
			answer, conn := f.gate.connected("93.184.216.34:22", "")
			peer := <-servers
			f.gate.open("93.184.216.99:80", "") // unreachable
			f.gate.open("10.0.0.1:80", "")      // denied
			closeFiles(f.gate.flow("93.184.216.34:53").Files)
			if i%2 == 0 {
				f.gate.closed(answer.Number, 0, 0)
			}
			conn.Close()
			peer.Close()
		}
		f.broker.Replace(rulesOf(t, "deny public"))
		f.end()
	}
	t.Run("first", run) // what the first run opens for good (epoll) is no leak
	before := descriptors(t)
	for range 3 {
		t.Run("again", run)
	}
	// Fewer is no leak: something of an earlier test may have ended meanwhile.
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
