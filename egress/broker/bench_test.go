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
func BenchmarkOpen(b *testing.B) {
	f := serve(b, Config{Rules: rulesOf(b, "db.example.com:5432")})
	f.broker.config.Log = nil
	f.resolver.set("db.example.com", "93.184.216.34")
	servers := f.leadsTo("93.184.216.34:5432")
	f.gate.lookup("db.example.com", dnsmsg.TypeA)
	for b.Loop() {
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
