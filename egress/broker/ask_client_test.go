package broker

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/egress"
	"clove.run/clove/egress/dnsmsg"
	"clove.run/clove/egress/wire"
)

// waiting is a broker whose questions wait until their end, or get an answer of yes.
func waiting(t *testing.T, hold time.Duration) (f *fixture, begun, over chan string, yes chan *egress.Rules) {
	t.Helper()
	begun, over, yes = make(chan string, 2*maxHeld), make(chan string, 2*maxHeld), make(chan *egress.Rules)
	f = serve(t, Config{Rules: rulesOf(t), Hold: hold, Ask: func(ctx context.Context, d Decision) *egress.Rules {
		begun <- d.Target()
		defer func() { over <- d.Target() }()
		select {
		case rules := <-yes:
			return rules
		case <-ctx.Done():
			return nil
		}
	}})
	return f, begun, over, yes
}

// opens begins a connection, and returns the number of the request.
func (f *fixture) opens(target string) (id uint64, answer <-chan wire.Answer) {
	f.t.Helper()
	answer, err := f.gate.begin(wire.Request{Open: &wire.Open{Target: netip.MustParseAddrPort(target)}})
	if err != nil {
		f.t.Fatal(err)
	}
	f.gate.mu.Lock()
	defer f.gate.mu.Unlock()
	return f.gate.id, answer
}

func take[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(deadline):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// A connection whose client has gone gives its place back at once, and its question has no one that waits any more. The controls
// are a client that is there, also one that only sends no more, and a report about another request.
func TestAClientThatHasGoneFreesItsPlace(t *testing.T) {
	t.Parallel()
	f, begun, over, yes := waiting(t, 0)
	standin := addresses(t, f.gate.lookup("api.example.com", dnsmsg.TypeA))[0] + ":8080"
	client := netip.MustParseAddrPort("192.0.2.1:40000")
	id, answer := f.opens(standin)
	take(t, begun)
	tell := func(of uint64, ended bool) {
		f.gate.tell(wire.Request{Held: &wire.Held{Of: of, Client: client, Target: netip.MustParseAddrPort(standin), Ended: ended}})
		f.gate.lookup("localhost", dnsmsg.TypeA) // what was told is looked at before
	}
	f.network.set(func() {
		f.network.clients = map[string]bool{fmt.Sprint(unix.IPPROTO_TCP, client, netip.MustParseAddrPort(standin)): true}
	})
	tell(id, false)
	tell(id, true)
	f.network.set(func() { clear(f.network.clients) })
	tell(id+1000, true)
	if len(over) != 0 || len(answer) != 0 {
		t.Fatal("control: the wait of a client that is there has ended")
	}
	f.network.set(func() { f.network.clientsError = unix.EPERM })
	if tell(id, false); len(over) != 0 {
		t.Fatal("control: without an answer of the kernel's the client counts as gone")
	}
	f.network.set(func() { f.network.clientsError = nil })
	tell(id, false)
	if take(t, over); take(t, answer).Result != wire.ResultDenied {
		t.Error("it is not refused")
	}
	_, answer = f.opens(standin) // made again, it is asked about again
	take(t, begun)
	f.resolver.set("api.example.com", "93.184.216.34")
	f.leadsTo("93.184.216.34:8080")
	yes <- rulesOf(t, "api.example.com:8080")
	if got := take(t, answer); got.Result != wire.ResultAllowed {
		t.Errorf("%+v", got)
	}
}

// The connections that wait are bounded, and a place of one that has gone is the next one's. The control is the last place,
// which is given.
func TestHeldConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	f, begun, over, _ := waiting(t, 0)
	standin := addresses(t, f.gate.lookup("api.example.com", dnsmsg.TypeA))[0]
	first, gone := f.opens(standin + ":9000")
	take(t, begun)
	for i := range maxHeld - 1 {
		f.opens(fmt.Sprintf("%s:%d", standin, 9001+i))
		take(t, begun)
	}
	_, answer := f.opens(standin + ":8080")
	if got := take(t, answer); got.Result != wire.ResultDenied || len(begun) != 0 {
		t.Errorf("one too many: %+v", got)
	}
	f.gate.tell(wire.Request{Held: &wire.Held{Of: first, Client: netip.MustParseAddrPort("192.0.2.1:40000"), Target: netip.MustParseAddrPort(standin + ":9000"), Ended: true}})
	take(t, over)
	take(t, gone)
	f.opens(standin + ":8080")
	if got := take(t, begun); got != "api.example.com:8080" {
		t.Errorf("%s", got)
	}
}

// A connection is held for the time of the setting, and no longer.
func TestAConnectionIsHeldForItsTime(t *testing.T) {
	t.Parallel()
	f, begun, over, _ := waiting(t, 50*time.Millisecond)
	standin := addresses(t, f.gate.lookup("api.example.com", dnsmsg.TypeA))[0]
	_, answer := f.opens(standin + ":8080")
	take(t, begun)
	take(t, over)
	if got := take(t, answer); got.Result != wire.ResultDenied {
		t.Errorf("%+v", got)
	}
	for given, want := range map[time.Duration]time.Duration{0: wire.HoldMost, time.Minute: time.Minute, 24 * time.Hour: wire.HoldMost} {
		if got := newPeople(Config{Hold: given}).hold; got != want {
			t.Errorf("%s: %s", given, got)
		}
	}
}

// A held connection ends with its gate, and with the broker.
func TestAHeldConnectionEndsWithItsGate(t *testing.T) {
	t.Parallel()
	for _, end := range []func(*fixture){func(f *fixture) { f.gate.conn.Close() }, func(f *fixture) { f.stop() }} {
		f, begun, over, _ := waiting(t, 0)
		standin := addresses(t, f.gate.lookup("api.example.com", dnsmsg.TypeA))[0]
		f.opens(standin + ":8080")
		take(t, begun)
		end(f)
		take(t, over)
	}
}
