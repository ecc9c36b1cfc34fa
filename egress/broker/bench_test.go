package broker

import (
	"context"
	"net/netip"
	"testing"

	"clove.run/clove/egress"
	"clove.run/clove/egress/dnsmsg"
	"clove.run/clove/egress/wire"
)

func BenchmarkDecision(b *testing.B) {
	rules := rulesOf(b, "api.example.com", "*.example.org", "10.0.0.0/8:5432", "deny evil.example.com")
	asked := egress.Connection{Proto: egress.TCP, Target: netip.MustParseAddrPort("93.184.216.34:443"),
		Pinned: []egress.Name{"api.example.com"}, Shown: "api.example.com", Looked: true}
	for b.Loop() {
		if !judge(rules, asked).Allowed {
			b.Fatal("denied")
		}
	}
}

// BenchmarkOpen measures a connection's whole way through the broker: request, decision, dial
// to a loopback server, descriptor, end.
func BenchmarkOpen(b *testing.B) { benchmarkOpen(b, Config{}) }

// BenchmarkOpenAsking is the same where people are asked about what no rule covers: nothing is asked here.
func BenchmarkOpenAsking(b *testing.B) {
	benchmarkOpen(b, Config{Ask: func(context.Context, Decision) *egress.Rules { b.Error("asked"); return nil }})
}

// BenchmarkOpenBesideSwap is the same where the run uses a secret for another host.
func BenchmarkOpenBesideSwap(b *testing.B) {
	benchmarkOpen(b, Config{Swap: &fakeSwap{host: "api.example.com"}})
}

func benchmarkOpen(b *testing.B, config Config) {
	open := opener(b, config)
	for b.Loop() {
		open()
	}
}

// opener makes a broker, and returns what opens and closes one connection that a rule allows.
func opener(t testing.TB, config Config) func() {
	config.Rules = rulesOf(t, "db.example.com:5432")
	f := serve(t, config)
	f.broker.config.Log = nil
	f.resolver.set("db.example.com", "93.184.216.34")
	servers := f.leadsTo("93.184.216.34:5432")
	f.gate.lookup("db.example.com", dnsmsg.TypeA)
	return func() {
		answer := f.gate.open("93.184.216.34:5432", "")
		closeFiles(answer.Files)
		f.gate.tell(wire.Request{Closed: &wire.Closed{Number: answer.Number}})
		(<-servers).Close()
	}
}

// BenchmarkDialAlone measures the part of BenchmarkOpen that every broker needs.
func BenchmarkDialAlone(b *testing.B) {
	f := serve(b, Config{Rules: rulesOf(b, "db.example.com:5432")})
	servers := f.leadsTo("93.184.216.34:5432")
	for b.Loop() {
		conn, err := f.network.dial(context.Background(), "tcp4", netip.MustParseAddrPort("93.184.216.34:5432"))
		if err != nil {
			b.Fatal(err)
		}
		conn.Close()
		(<-servers).Close()
	}
}

func BenchmarkLookup(b *testing.B) {
	f := serve(b, Config{Rules: rulesOf(b, "api.example.com")})
	f.broker.config.Log = nil
	f.resolver.set("api.example.com", "93.184.216.34")
	for b.Loop() {
		f.gate.lookup("api.example.com", dnsmsg.TypeA)
	}
}
