package channel

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"clove.run/clove/api"
)

// caller is a Caller on one side, and the other, which the test is.
type caller struct {
	*Caller
	t     *testing.T
	conn  *Conn
	other *Conn
	ended chan error
}

func newCaller(t *testing.T) *caller {
	t.Helper()
	c := &caller{t: t, ended: make(chan error, 1)}
	c.other, c.conn = pair(t)
	c.Caller = NewCaller(c.conn)
	go func() { c.ended <- c.Receive() }()
	t.Cleanup(func() { c.conn.Close(); c.other.Close() })
	return c
}

type outcome struct {
	result string
	err    error
}

// call begins a call, and returns what the other side gets of it.
func (c *caller) call(ctx context.Context, waits bool) (Call, <-chan outcome) {
	c.t.Helper()
	done := make(chan outcome, 1)
	go func() {
		result, err := c.Call(ctx, "agent.get", json.RawMessage("{}"), waits)
		done <- outcome{string(result), err}
	}()
	return *c.receive().Call, done
}

func (c *caller) receive() (m FromGate) {
	c.t.Helper()
	must(c.t, c.other.File().SetReadDeadline(time.Now().Add(patience)))
	must(c.t, c.other.Receive(&m))
	return m
}

func code(err error) api.Code {
	if e := new(api.Error); errors.As(err, &e) {
		return e.Code
	}
	return 0
}

func TestACallIsAnswered(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	first, one := c.call(t.Context(), false)
	second, two := c.call(t.Context(), false)
	if first.Number == second.Number || first.Method != "agent.get" {
		t.Errorf("%+v, %+v", first, second)
	}
	must(t, c.other.Send(ToGate{Answer: &Answer{Number: second.Number, Result: json.RawMessage("2")}}))
	must(t, c.other.Send(ToGate{Answer: &Answer{Number: 77, Result: json.RawMessage("3")}}))
	must(t, c.other.Send(ToGate{Answer: &Answer{Number: first.Number, Error: api.Failure(api.CodeDenied, "", "no")}}))
	if o := <-two; o.result != "2" || o.err != nil {
		t.Errorf("%+v", o)
	}
	if o := <-one; code(o.err) != api.CodeDenied {
		t.Errorf("%+v", o)
	}
}

func TestACallIsCancelled(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	ctx, cancel := context.WithCancel(t.Context())
	call, done := c.call(ctx, true)
	cancel()
	if o := <-done; !errors.Is(o.err, context.Canceled) {
		t.Errorf("%+v", o)
	}
	if m := c.receive(); m.Cancel != call.Number {
		t.Errorf("%+v", m)
	}
}

// A call that waits is sent again where the process that would answer has gone, or is busy. The control is
// one that does not wait.
func TestACallThatWaitsGoesOn(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	waiting, done := c.call(t.Context(), true)
	_, refused := c.call(t.Context(), false)
	must(t, c.other.Send(ToGate{Away: api.Failure(api.CodeBusy, "", "away")}))
	if o := <-refused; code(o.err) != api.CodeBusy {
		t.Errorf("%+v", o)
	}
	for range 2 {
		if m := c.receive(); m.Call == nil || m.Call.Number != waiting.Number || m.Call.Method != waiting.Method {
			t.Errorf("%+v", m)
		}
		must(t, c.other.Send(ToGate{Answer: &Answer{Number: waiting.Number, Error: api.Failure(api.CodeBusy, "", "away")}}))
	}
	c.receive()
	must(t, c.other.Send(ToGate{Answer: &Answer{Number: waiting.Number, Result: json.RawMessage("1")}}))
	if o := <-done; o.result != "1" || o.err != nil {
		t.Errorf("%+v", o)
	}
}

func TestACallerIsBounded(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	if _, err := c.Call(t.Context(), "agent.get", json.RawMessage(`"`+strings.Repeat("a", api.MaxAgentLine)+`"`), false); code(err) != api.CodeTooLarge {
		t.Error(err)
	}
	var all []<-chan outcome
	for range MaxCalls {
		_, done := c.call(t.Context(), true)
		all = append(all, done)
	}
	if _, err := c.Call(t.Context(), "agent.get", nil, false); code(err) != api.CodeBusy {
		t.Error(err)
	}
	c.other.Close()
	for _, done := range all {
		if o := <-done; code(o.err) != api.CodeBusy {
			t.Errorf("%+v", o)
		}
	}
	if err := <-c.ended; err != nil {
		t.Error(err)
	}
	if _, err := c.Call(t.Context(), "agent.get", nil, true); code(err) != api.CodeBusy {
		t.Error(err)
	}
}
