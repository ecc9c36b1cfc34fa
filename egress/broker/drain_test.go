package broker

import (
	"context"
	"testing"
	"time"

	"clove.run/clove/egress/wire"
)

// TestDrainWaitsForConnectionsOnly: not for flows, and not without a limit.
func TestDrainWaitsForConnectionsOnly(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t, "93.184.216.34:22", "udp://93.184.216.34:53"), Limits: wire.Limits{Connections: 9}})
	f.leadsTo("93.184.216.34:22")
	f.datagramServer("93.184.216.34:53")
	flow := f.gate.flow("93.184.216.34:53")
	defer closeFiles(flow.Files)
	drained := func(bound time.Duration) bool {
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		defer cancel()
		f.broker.Drain(ctx)
		return ctx.Err() == nil
	}
	if !drained(deadline) {
		t.Error("nothing is open but a flow, and it waits")
	}
	answer, conn := f.gate.connected("93.184.216.34:22", "")
	defer conn.Close()
	if drained(50 * time.Millisecond) {
		t.Error("a connection is open, and it does not wait")
	}
	done := make(chan bool)
	go func() { done <- drained(deadline) }()
	f.gate.closed(answer.Number, 0, 0)
	if !<-done {
		t.Error("the last connection is closed, and it waits")
	}
}
