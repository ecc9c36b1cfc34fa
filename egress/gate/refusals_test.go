package gate

import (
	"net/netip"
	"testing"

	"clove.run/clove/egress/wire"
)

// channel is one between a gate and a broker.
func brokerChannel(t *testing.T) (broker, gate *wire.Conn) {
	t.Helper()
	broker, file, err := wire.Pair()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { broker.Close() })
	gate = takeOver(t, file)
	t.Cleanup(func() { gate.Close() })
	return broker, gate
}

// TestEveryRefusalIsCounted: although few are reported one by one.
func TestEveryRefusalIsCounted(t *testing.T) {
	t.Parallel()
	broker, conn := brokerChannel(t)
	r := newRefusals(conn)
	done := make(chan struct{})
	defer close(done)
	go r.report(done)
	const many = 5000
	for range many {
		r.tcp(netip.MustParseAddrPort("93.184.216.34:80"), "", wire.ReasonRate)
	}
	messages := 0
	for counted := int64(0); counted < many; messages++ {
		request, err := broker.ReceiveRequest()
		if err != nil || request.Refused == nil {
			t.Fatalf("after %d of %d: %+v, %v", counted, many, request, err)
		}
		counted += request.Refused.Count
		if counted > many {
			t.Fatalf("%d of %d", counted, many)
		}
	}
	if messages > 20 {
		t.Errorf("%d messages", messages)
	}
}

// TestTheLastRefusalHasItsTarget: it may still wait when the gate ends.
func TestTheLastRefusalHasItsTarget(t *testing.T) {
	t.Parallel()
	broker, conn := brokerChannel(t)
	done := make(chan struct{})
	close(done)
	target := netip.MustParseAddrPort("93.184.216.34:80")
	for range 20 { // which of the two is seen first is random
		r := newRefusals(conn)
		r.tcp(target, "", wire.ReasonNoName)
		r.report(done)
		request, err := broker.ReceiveRequest()
		if err != nil || request.Refused == nil || request.Refused.Target != target || request.Refused.Count != 1 {
			t.Fatalf("%+v, %v", request.Refused, err)
		}
	}
}
