package egress

import (
	"fmt"
	"net/netip"
	"testing"

	"clove.run/clove/agent"
)

// manyRules returns 100 rules of every kind.
func manyRules(b *testing.B) *Rules {
	lines := []string{"-metadata", "private:5432"}
	for i := range 32 {
		lines = append(lines, fmt.Sprintf("host%d.example.com", i), fmt.Sprintf("*.zone%d.example.com:*", i), fmt.Sprintf("10.%d.0.0/16:5432", i))
	}
	lines = append(lines, "-evil.test", "-*.evil.test")
	return rulesOf(b, agent.NetworkAllowlist, lines...)
}

func BenchmarkConnect(b *testing.B) {
	rules := manyRules(b)
	for _, row := range []struct {
		name string
		c    Connection
	}{
		{"name", connection("93.184.216.34:443", "a.b.zone31.example.com")},
		{"last-address", connection("10.31.1.1:5432")},
		{"ipv6", connection("[2606:4700::1111]:443", "host31.example.com")},
		{"refused", connection("93.184.216.34:8080", "absent.test")},
	} {
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				rules.Connect(row.c)
			}
		})
	}
}

func BenchmarkResolve(b *testing.B) {
	rules := manyRules(b)
	for b.Loop() {
		rules.Resolve("a.b.c.zone31.example.com")
	}
}

func BenchmarkAnswer(b *testing.B) {
	rules, addr := manyRules(b), netip.MustParseAddr("2606:4700::1111")
	for b.Loop() {
		rules.Answer("a.b.c.zone31.example.com", addr)
	}
}

func BenchmarkParseName(b *testing.B) {
	for b.Loop() {
		if _, err := ParseName("A.b.c.zone31.example.com."); err != nil {
			b.Fatal(err)
		}
	}
}
