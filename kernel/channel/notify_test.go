package channel

import (
	"fmt"
	"testing"

	"clove.run/clove/api"
)

// Notifications come in their order, without a wait for the gate, and not behind End, nor above the bound.
func TestNotifierSends(t *testing.T) {
	served, gate := pair(t)
	n := NewNotifier(served)
	taken := 0
	for ; n.Notify([]api.Notice{{Method: "x", Params: fmt.Appendf(nil, "%d", taken)}}); taken++ {
		if taken > 1_000_000 {
			t.Fatal("a gate that does not read is sent notifications without a bound")
		}
	}
	for i := range taken {
		var m ToGate
		must(t, gate.Receive(&m))
		if m.Notice == nil || string(m.Notice.Params) != fmt.Sprint(i) {
			t.Fatalf("%+v came, not %d", m.Notice, i)
		}
	}
	if left := n.End(); len(left) != 0 {
		t.Errorf("%v are left", left)
	}
	if n.Notify([]api.Notice{{Method: "x"}}) {
		t.Error("one was taken behind the end")
	}
}

// Notifications of one key that wait are one, and those that were not sent are returned.
func TestNotifierReturnsWhatIsLeft(t *testing.T) {
	served, _ := pair(t)
	n := &Notifier{conn: served, sending: true} // by a goroutine that waits for the gate
	for range 3 {
		if !n.Notify([]api.Notice{{Method: "y", Key: "k", Params: []byte(`2`)}}) {
			t.Fatal("it was not taken")
		}
	}
	if left := n.End(); len(left) != 1 || left[0].Count != 3 {
		t.Errorf("%+v are left", left)
	}
}
