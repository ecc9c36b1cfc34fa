package channel

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"clove.run/clove/api"
)

// patience bounds every wait of a test, also on a loaded machine.
const patience = time.Minute

// heldCall is a call that waits for the test's answer.
type heldCall struct {
	ctx    context.Context
	method string
	answer chan<- error
}

// rig is a channel that is served: the test is the gate, and answers each call. A call that is cancelled
// does not end by itself: that is the test's to decide.
type rig struct {
	t      *testing.T
	gate   *Conn
	served *Conn
	calls  chan heldCall
	stop   context.CancelFunc
	ended  chan error
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, calls: make(chan heldCall, 2*MaxCalls), ended: make(chan error, 1)}
	r.served, r.gate = pair(t)
	r.serve()
	t.Cleanup(func() { r.gate.Close(); r.stop() })
	return r
}

func (r *rig) serve() {
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() {
		r.ended <- r.served.Serve(ctx, func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
			answer := make(chan error)
			r.calls <- heldCall{ctx, method, answer}
			return params, <-answer
		})
	}()
}

func (r *rig) send(m FromGate) {
	r.t.Helper()
	must(r.t, r.gate.Send(m))
}

func (r *rig) call(number uint64) {
	r.t.Helper()
	r.send(FromGate{Call: &Call{Number: number, Method: "agent.get", Params: json.RawMessage("{}")}})
}

// wantAnswer receives the answer to a call; code 0 is a result.
func (r *rig) wantAnswer(number uint64, code api.Code) {
	r.t.Helper()
	var m ToGate
	if err := r.gate.Receive(&m); err != nil || m.Answer == nil {
		r.t.Fatalf("%+v, %v", m, err)
	}
	got := api.Code(0)
	if m.Answer.Error != nil {
		got = m.Answer.Error.Code
	}
	if m.Answer.Number != number || got != code || (m.Answer.Result == nil) != (code != 0) {
		r.t.Errorf("call %d has %d, %+v; want call %d, code %d", m.Answer.Number, got, m.Answer, number, code)
	}
}

func (r *rig) wantEnd(want error) {
	r.t.Helper()
	select {
	case err := <-r.ended:
		if !errors.Is(err, want) {
			r.t.Errorf("%v, want %v", err, want)
		}
	case <-time.After(patience):
		r.t.Fatal("it goes on")
	}
}

func (c heldCall) wantCancelled(t *testing.T) {
	t.Helper()
	select {
	case <-c.ctx.Done():
	case <-time.After(patience):
		t.Fatal("it is not cancelled")
	}
}

// The bound of calls is kept also where the gate does not keep it: a call too many is answered, one
// that is cancelled keeps its place until it has ended, and a number that is under way is no second call.
func TestCallsOfAGateAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var calls []heldCall
	for i := range MaxCalls {
		r.call(uint64(i + 1))
		calls = append(calls, <-r.calls)
	}
	r.call(1)
	r.call(1000)
	r.wantAnswer(1000, api.CodeBusy)
	r.send(FromGate{Cancel: 5})
	calls[4].wantCancelled(t)
	r.send(FromGate{Cancel: 4444}) // there is none
	r.call(1001)
	r.wantAnswer(1001, api.CodeBusy)
	calls[4].answer <- api.Failure(api.CodeCancelled, "", "it was cancelled")
	r.wantAnswer(5, api.CodeCancelled)
	r.call(1002) // it waits a moment for the place
	last := <-r.calls
	last.answer <- nil
	r.wantAnswer(1002, 0)
	for i, c := range calls {
		if i != 4 {
			if c.ctx.Err() != nil {
				t.Errorf("call %d is cancelled", i+1)
			}
			c.answer <- nil
			r.wantAnswer(uint64(i+1), 0)
		}
	}
}

// The end of the gate cancels every call that it waited for.
func TestTheEndOfTheGateCancelsCalls(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.call(1)
	c := <-r.calls
	must(t, r.gate.Close())
	c.wantCancelled(t)
	c.answer <- nil
	r.wantEnd(io.EOF)
}

// The end of a Serve cancels its calls, which are still answered. The next one
// reads the messages that it has not read.
func TestServingGoesOn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for range 3 {
		r.call(1)
		c := <-r.calls
		r.stop()
		c.wantCancelled(t)
		c.answer <- api.Failure(api.CodeDraining, "", "it ends")
		r.wantAnswer(1, api.CodeDraining)
		r.wantEnd(nil)
		r.call(2)
		r.serve()
		c = <-r.calls
		c.answer <- nil
		r.wantAnswer(2, 0)
	}
}

// An answer that does not fit into a packet is an error, and the next one arrives.
func TestLongAnswers(t *testing.T) {
	t.Parallel()
	served, gate := pair(t)
	s := &serving{conn: served, sendTime: patience}
	r := &rig{t: t, gate: gate}
	s.answer(1, json.RawMessage(`"`+strings.Repeat("x", MaxMessageBytes)+`"`), nil)
	r.wantAnswer(1, api.CodeTooLarge)
	s.answer(2, json.RawMessage("{}"), nil)
	r.wantAnswer(2, 0)
}

// A gate that reads no answers ends the Serve. The control is one that reads late.
func TestAGateThatReadsNothing(t *testing.T) {
	t.Parallel()
	const answers = 8 // more than fit into the socket
	for _, reads := range []bool{true, false} {
		served, gate := pair(t)
		s := &serving{conn: served, sendTime: 100 * time.Millisecond}
		if reads {
			s.sendTime = patience
		}
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			for i := range uint64(answers) {
				s.answer(i, json.RawMessage(`"`+strings.Repeat("x", api.MaxAgentLine)+`"`), nil)
			}
		}()
		if reads {
			time.Sleep(200 * time.Millisecond)
			r := &rig{t: t, gate: gate}
			for i := range uint64(answers) {
				r.wantAnswer(i, 0)
			}
		}
		<-answered
		want := os.ErrDeadlineExceeded
		if reads {
			want = io.EOF
			must(t, gate.Close())
		}
		if err := s.receive(); !errors.Is(err, want) {
			t.Errorf("reads %t: %v, want %v", reads, err, want)
		}
	}
}
