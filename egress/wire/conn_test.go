package wire

import (
	"io"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"

	"clove.run/clove/internal/packet"
)

// ends returns both sides of one channel.
func ends(t *testing.T) (broker, gate *Conn) {
	t.Helper()
	broker, file, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	own, err := packet.Inherited(file)
	if err != nil {
		t.Fatal(err)
	}
	gate = &Conn{own}
	t.Cleanup(func() { broker.Close(); gate.Close() })
	return broker, gate
}

func TestARequestArrivesAsItWasSent(t *testing.T) {
	t.Parallel()
	broker, gate := ends(t)
	target := netip.MustParseAddrPort("[2001:db8::1]:443")
	for _, want := range []Request{
		{Ready: &Ready{}},
		{ID: 7, Lookup: &Lookup{Name: "api.example.com", Type: 28}},
		{ID: 8, Open: &Open{Target: target, Name: "api.example.com", Shown: ShownTLS}},
		{Refused: &Refused{Target: target, UDP: true, Reason: ReasonRate, Count: 3}},
		{Closed: &Closed{Number: 4, RxBytes: 1, TxBytes: 2}},
	} {
		if err := gate.SendRequest(want); err != nil {
			t.Fatal(err)
		}
		if got, err := broker.ReceiveRequest(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
}

func TestAnAnswerBringsItsFiles(t *testing.T) {
	t.Parallel()
	broker, gate := ends(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := broker.SendAnswer(Answer{ID: 3, Result: ResultAllowed, Files: []*os.File{write}}); err != nil {
		t.Fatal(err)
	}
	write.Close()
	answer, err := gate.ReceiveAnswer()
	if err != nil || answer.ID != 3 || len(answer.Files) != 1 {
		t.Fatalf("%+v, %v", answer, err)
	}
	io.WriteString(answer.Files[0], "through")
	answer.Files[0].Close()
	if text, err := io.ReadAll(read); string(text) != "through" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestAGateHasNoFilesToGive: descriptors that it sends are closed.
func TestAGateHasNoFilesToGive(t *testing.T) {
	t.Parallel()
	broker, gate := ends(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := gate.Send(Request{Ready: &Ready{}}, write); err != nil {
		t.Fatal(err)
	}
	write.Close()
	if _, err := broker.ReceiveRequest(); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(read); len(text) != 0 || err != nil { // it returns: no process has the other end open
		t.Errorf("%q, %v", text, err)
	}
}

func TestTheEndOfOneSideIsSeenByTheOther(t *testing.T) {
	t.Parallel()
	broker, gate := ends(t)
	gate.Close()
	if _, err := broker.ReceiveRequest(); err != io.EOF {
		t.Errorf("%v, want EOF", err)
	}
	waiting, other := ends(t)
	done := make(chan error)
	go func() { _, err := waiting.ReceiveRequest(); done <- err }()
	waiting.Close()
	if err := <-done; err != io.EOF {
		t.Errorf("own close: %v, want EOF", err)
	}
	other.Close()
}

func TestWhatIsNoMessage(t *testing.T) {
	t.Parallel()
	broker, gate := ends(t)
	for _, text := range []string{"no json", `{"id":"x"}`, `{"open":{"target":"1.2.3.4"}}`} {
		if _, err := gate.File().WriteString(text); err != nil {
			t.Fatal(err)
		}
		if _, err := broker.ReceiveRequest(); err == nil || err == io.EOF {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := gate.SendRequest(Request{Lookup: &Lookup{Name: strings.Repeat("x", packet.MaxBytes)}}); err == nil {
		t.Error("a message that is too long was sent")
	}
}
