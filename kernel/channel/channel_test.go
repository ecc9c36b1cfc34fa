package channel

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"testing"

	"clove.run/clove/api"
	"clove.run/clove/internal/passfd"
)

// pair is both sides of a channel, as the supervisor and the gate have them.
func pair(t *testing.T) (super, gate *Conn) {
	t.Helper()
	super, gate, err := Both()
	must(t, err)
	t.Cleanup(func() { super.Close(); gate.Close() })
	return super, gate
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Each message arrives as it was sent, one at a time, and says nothing that the one before
// it said.
func TestMessagesArrive(t *testing.T) {
	t.Parallel()
	super, gate := pair(t)
	for _, sent := range []FromGate{
		{Call: &Call{Number: 1<<64 - 1, Method: "agent.get", Params: json.RawMessage(`{"a":"\u2028\n"}`)}},
		{Cancel: 7},
		{Call: &Call{Number: 1, Method: "m", Params: json.RawMessage("{}")}},
	} {
		var got FromGate
		must(t, gate.Send(sent))
		must(t, super.Receive(&got))
		if !reflect.DeepEqual(got, sent) {
			t.Errorf("got %+v, want %+v", got, sent)
		}
	}
	for _, sent := range []ToGate{
		{Answer: &Answer{Number: 1, Result: json.RawMessage(`{"b":1}`)}},
		{Answer: &Answer{Number: 1, Error: api.Failure(api.CodeBusy, "hint", "message")}},
		{Notice: &Notice{api.Notice{Method: "m", Params: json.RawMessage("{}")}}},
	} {
		var got ToGate
		must(t, super.Send(sent))
		must(t, gate.Receive(&got))
		if !reflect.DeepEqual(got, sent) {
			t.Errorf("got %+v, want %+v", got, sent)
		}
	}
}

// A message that does not fit is refused by its sender, and the next one arrives. The
// longest line of an agent fits with its envelope.
func TestMessagesAreBounded(t *testing.T) {
	t.Parallel()
	super, gate := pair(t)
	call := func(length int) FromGate {
		return FromGate{Call: &Call{Number: 1, Method: "grant.check", Params: json.RawMessage(`"` + strings.Repeat("x", length) + `"`)}}
	}
	if err := gate.Send(call(MaxMessageBytes)); !errors.Is(err, ErrTooLong) {
		t.Errorf("%v", err)
	}
	if err := gate.Send(func() {}); err == nil || errors.Is(err, ErrTooLong) {
		t.Errorf("what has no encoding: %v", err)
	}
	must(t, gate.Send(call(api.MaxAgentLine)))
	var got FromGate
	must(t, super.Receive(&got))
	if len(got.Call.Params) != api.MaxAgentLine+2 {
		t.Errorf("%d bytes", len(got.Call.Params))
	}
}

// A gate that was taken over may send anything. Bytes that are no message are an error, and
// descriptors that are sent along are not kept.
func TestWhatIsNoMessage(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"x", "[]", `{"call":5}`, `{"cancel":-1}`, strings.Repeat(" ", MaxMessageBytes+1)} {
		super, gate := pair(t)
		if _, err := passfd.Send(gate.File(), []byte(text)); err != nil {
			t.Fatal(err)
		}
		var got FromGate
		if err := super.Receive(&got); err == nil || err == io.EOF {
			t.Errorf("%.20q: %v", text, err)
		}
	}
	super, gate := pair(t)
	if _, err := passfd.Send(gate.File(), []byte(`{"cancel":1}`), gate.File()); err != nil {
		t.Fatal(err)
	}
	var got FromGate
	if err := super.Receive(&got); err == nil {
		t.Errorf("descriptors are taken: %+v", got)
	}
}

// Any number may send at once; no message is mixed with another, and each arrives once.
func TestManySend(t *testing.T) {
	t.Parallel()
	super, gate := pair(t)
	const senders, each = 16, 50
	var all sync.WaitGroup
	for i := range senders {
		all.Go(func() {
			for j := range each {
				params := fmt.Sprintf(`{"text":%q}`, strings.Repeat(string(rune('a'+i)), 100*j))
				if err := gate.Send(FromGate{Call: &Call{Number: uint64(i*each + j), Method: "m", Params: json.RawMessage(params)}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	seen := map[uint64]bool{}
	for range senders * each {
		var m FromGate
		must(t, super.Receive(&m))
		var p struct{ Text string }
		must(t, json.Unmarshal(m.Call.Params, &p))
		i, j := int(m.Call.Number)/each, int(m.Call.Number)%each
		if seen[m.Call.Number] || p.Text != strings.Repeat(string(rune('a'+i)), 100*j) {
			t.Fatalf("number %d, seen before: %t, %d bytes", m.Call.Number, seen[m.Call.Number], len(p.Text))
		}
		seen[m.Call.Number] = true
	}
	all.Wait()
}

// Either side's end is io.EOF to a receiver, and an error to a sender.
func TestTheEnd(t *testing.T) {
	t.Parallel()
	super, gate := pair(t)
	must(t, gate.Send(FromGate{Cancel: 1}))
	must(t, gate.Close())
	var m FromGate
	must(t, super.Receive(&m)) // what was sent before arrives
	if err := super.Receive(&m); err != io.EOF {
		t.Errorf("the other side's: %v", err)
	}
	if err := super.Send(ToGate{}); err == nil {
		t.Error("it was sent without a receiver")
	}
	ended := make(chan error, 1)
	other, _ := pair(t)
	go func() { ended <- other.Receive(&m) }()
	must(t, other.Close())
	if err := <-ended; err != io.EOF {
		t.Errorf("its own: %v", err)
	}
}
