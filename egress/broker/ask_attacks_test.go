package broker

import (
	"context"
	"fmt"
	"net/netip"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"clove.run/clove/egress"
	"clove.run/clove/egress/dnsmsg"
	"clove.run/clove/egress/wire"
)

// An answer of the name server that changes while a connection waits is of no use: the name is resolved behind the yes, once, and the
// connection goes to an address of that answer alone. The control is a name that keeps its public address.
func TestAnswersThatChangeWhileAConnectionWaits(t *testing.T) {
	t.Parallel()
	for then, want := range map[string]wire.Result{"10.0.0.7": wire.ResultDenied, "169.254.169.254": wire.ResultDenied, "127.0.0.1": wire.ResultDenied, "93.184.216.34": wire.ResultAllowed} {
		asked, answer := make(chan Decision, 8), make(chan *egress.Rules)
		f := serve(t, Config{Rules: rulesOf(t), Ask: func(_ context.Context, d Decision) *egress.Rules {
			asked <- d
			return <-answer
		}})
		f.resolver.set("moves.example.com", "93.184.216.34")
		f.leadsTo("93.184.216.34:8080")
		standin := addresses(t, f.gate.lookup("moves.example.com", dnsmsg.TypeA))[0]
		_, opened := f.opens(standin + ":8080")
		take(t, asked)
		f.resolver.set("moves.example.com", then)
		answer <- rulesOf(t, "moves.example.com:8080")
		if got := take(t, opened); got.Result != want {
			t.Errorf("%s: %+v", then, got)
		}
		f.resolver.set("moves.example.com", "93.184.216.99") // behind the answer it changes again
		for _, to := range f.network.dials() {
			if to != netip.MustParseAddrPort("93.184.216.34:8080") {
				t.Errorf("%s: it goes to %s", then, to)
			}
		}
	}
}

// What a deny rule or the fixed set refuses is refused without a question. The control is the same target without the deny rule, and a
// public address.
func TestWhatIsForbiddenIsNoQuestion(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		rules  []string
		target string // an address, or a name
		asked  int64
	}{
		{[]string{"deny evil.example.net"}, "evil.example.net", 0},
		{nil, "evil.example.net", 1},
		{[]string{"deny 151.101.1.69"}, "151.101.1.69", 0},
		{nil, "151.101.1.69", 1},
		{nil, "169.254.169.254", 0},
	} {
		var asked atomic.Int64
		f := serve(t, Config{Rules: rulesOf(t, row.rules...), Ask: func(context.Context, Decision) *egress.Rules { asked.Add(1); return nil }})
		target := row.target
		if _, err := netip.ParseAddr(target); err != nil {
			answer := f.gate.lookup(target, dnsmsg.TypeA)
			if (answer.Result == wire.ResultAllowed) != (row.asked == 1) || f.queries(target) != 0 {
				t.Errorf("%+v: %+v", row, answer)
			}
			if answer.Result != wire.ResultAllowed {
				continue
			}
			target = addresses(t, answer)[0]
		}
		if got := f.gate.open(target+":8080", ""); got.Result != wire.ResultDenied || asked.Load() != row.asked {
			t.Errorf("%+v: %+v, asked %d times", row, got, asked.Load())
		}
	}
}

// Whatever names are looked up, in whatever order: a name keeps its stand-in, no two names share one, each leads back to its
// name, and none lies outside of the range that no server has. What has no stand-in has no name.
func TestStandinsAreOfOneNameEach(t *testing.T) {
	t.Parallel()
	name := rapid.StringMatching(`[a-z]{1,3}\.(example\.com|test)`)
	rapid.Check(t, func(t *rapid.T) {
		p := newPeople(Config{})
		of, names := map[egress.Name]netip.Addr{}, map[netip.Addr]egress.Name{}
		for _, text := range rapid.SliceOfN(name, 1, 300).Draw(t, "names") {
			n := egress.Name(text)
			got, free := p.standin(n)
			if had, known := of[n]; known && got != had || !free || !standinRange.Contains(got) {
				t.Fatalf("%s: %s, then %s", n, had, got)
			}
			if other, taken := names[got]; taken && other != n {
				t.Fatalf("%s stands for %s and %s", got, other, n)
			}
			of[n], names[got] = got, n
		}
		for addr, n := range names {
			if p.name(addr) != n {
				t.Fatalf("%s leads to %q, not to %s", addr, p.name(addr), n)
			}
		}
		bytes := standinRange.Addr().As4()
		bytes[1], bytes[2], bytes[3] = bytes[1]+rapid.Byte().Draw(t, "high")%2, rapid.Byte().Draw(t, "middle"), rapid.Byte().Draw(t, "low")
		if addr := netip.AddrFrom4(bytes); p.name(addr) != names[addr] {
			t.Fatalf("%s leads to %q", addr, p.name(addr))
		}
	})
}

// The names with a stand-in are bounded, and the stand-ins of those before stay.
func TestStandinsAreBounded(t *testing.T) {
	t.Parallel()
	p := newPeople(Config{})
	first, _ := p.standin("h0.example.com")
	for i := range 10_000 {
		if _, free := p.standin(egress.Name(fmt.Sprintf("h%d.example.com", i))); free != (i < standinsMost) {
			t.Fatalf("%d: %t", i, free)
		}
	}
	if again, free := p.standin("h0.example.com"); !free || again != first {
		t.Errorf("%s, then %s", first, again)
	}
}

// A stand-in is never dialled, whatever people answer and whether the name is known: the host's side sees true addresses only. The control is the
// true address of the name, which is.
func TestAStandinIsNeverDialled(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t), Ask: func(context.Context, Decision) *egress.Rules { return rulesOf(t, "api.example.com:8080") }})
	f.resolver.set("api.example.com", "93.184.216.34")
	f.leadsTo("93.184.216.34:8080")
	standin := addresses(t, f.gate.lookup("api.example.com", dnsmsg.TypeA))[0]
	if got := f.gate.open(standin+":8080", ""); got.Result != wire.ResultAllowed {
		t.Errorf("control: %+v", got)
	}
	unknown := netip.MustParseAddr(standin).Next().String()
	for _, target := range []string{standin + ":8081", unknown + ":8080"} {
		f.gate.open(target, "")
	}
	f.resolver.set("standin.example.com", "198.18.0.9") // a name server that leads into the range
	f.broker.Replace(rulesOf(t, "api.example.com", "standin.example.com"))
	f.gate.lookup("standin.example.com", dnsmsg.TypeA)
	f.gate.open("198.18.0.9:8080", "")
	f.gate.open(standin+":8080", "")
	for _, to := range f.network.dials() {
		if standinRange.Contains(to.Addr()) {
			t.Errorf("%s is dialled", to)
		}
	}
}
