package resolver

import (
	"fmt"
	"testing"

	"clove.run/clove/egress/dnsmsg"
)

// BenchmarkLookup measures answers per second, cached ones and those of a server on loopback.
func BenchmarkLookup(b *testing.B) {
	server := serve(b, records(b, "a.test. 3600 IN A 10.0.0.1"))
	go func() {
		for range server.arrived {
		}
	}()
	defer close(server.arrived)
	ctx := deadline(b)
	b.Run("kept", func(b *testing.B) {
		r := asking(server)
		for b.Loop() {
			if _, err := r.Lookup(ctx, "a.test", dnsmsg.TypeA); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "answers/s")
	})
	b.Run("asked", func(b *testing.B) {
		r := asking(server)
		names := 0
		for b.Loop() {
			names++
			if _, err := r.Lookup(ctx, fmt.Sprintf("%d.test", names), dnsmsg.TypeA); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "answers/s")
	})
}
