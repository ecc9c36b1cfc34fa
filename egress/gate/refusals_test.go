package gate

import (
	"net/netip"
	"testing"

	"clove.run/clove/egress/wire"
)

// TestEveryRefusalIsCounted, though few are told one by one.
func TestEveryRefusalIsCounted(t *testing.T) {
	broker, file, err := wire.Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	conn, err := wire.NewConn(file)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
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
