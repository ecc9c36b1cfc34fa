package channel

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"clove.run/clove/api"
)

// againTime is between a call that waits and the next attempt to have it answered.
const againTime = 200 * time.Millisecond

// Caller makes calls over a channel and waits for their answers: the side of a process that serves
// clients of its own. Notifications are dropped.
type Caller struct {
	conn *Conn

	mu    sync.Mutex // guards the following
	last  uint64     // number of the newest call
	calls map[uint64]*calling
	ended bool // the other side is gone
}

// calling is a call in flight.
type calling struct {
	answer chan Answer // has room for one
	again  *Call       // as it is sent again where the process that would answer has gone; nil: not
	due    bool        // it is about to be
}

// NewCaller makes calls over c, which stays the caller's.
func NewCaller(c *Conn) *Caller { return &Caller{conn: c, calls: map[uint64]*calling{}} }

// Receive passes answers on until the channel ends, which is no error. Calls in flight are refused then.
func (c *Caller) Receive() error {
	defer c.end()
	for {
		var m ToGate
		if err := c.conn.Receive(&m); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		switch {
		case m.Answer != nil:
			c.answer(*m.Answer)
		case m.Away != nil:
			c.away(m.Away)
		}
	}
}

// Call makes one call. An error is an *api.Error, or that of ctx, with which the call is cancelled.
// waits is the row's Waits: such a call goes on while no process answers.
func (c *Caller) Call(ctx context.Context, method string, params json.RawMessage, waits bool) (json.RawMessage, error) {
	if len(params) > api.MaxAgentLine {
		return nil, api.Failure(api.CodeTooLarge, "", "a call has at most %d bytes", api.MaxAgentLine)
	}
	number, call, err := c.enter(Call{Method: method, Params: params}, waits)
	if err != nil {
		return nil, err
	}
	defer c.forget(number)
	if err := c.conn.Send(FromGate{Call: &Call{Number: number, Method: method, Params: params}}); err != nil {
		return nil, gone()
	}
	select {
	case a := <-call.answer:
		if a.Error != nil {
			return nil, a.Error
		}
		return a.Result, nil
	case <-ctx.Done():
		_ = c.conn.Send(FromGate{Cancel: number}) // where the channel has ended, so has the call
		return nil, ctx.Err()
	}
}

func gone() *api.Error {
	return api.Failure(api.CodeBusy, "ask again in a moment", "clove is away")
}

// enter numbers a call, unless there are too many.
func (c *Caller) enter(call Call, waits bool) (uint64, *calling, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return 0, nil, gone()
	}
	if len(c.calls) >= MaxCalls {
		return 0, nil, api.Failure(api.CodeBusy, "", "%d calls are in flight already", MaxCalls)
	}
	c.last++
	entered := &calling{answer: make(chan Answer, 1)}
	if call.Number = c.last; waits {
		entered.again = &call
	}
	c.calls[c.last] = entered
	return c.last, entered, nil
}

func (c *Caller) forget(number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, number)
}

// answer gives a call its answer. One that waits, and that the process could not answer, is sent again.
func (c *Caller) answer(a Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.calls[a.Number]
	if call == nil || a.Error != nil && a.Error.Code == api.CodeBusy && c.later(a.Number, call) {
		return
	}
	delete(c.calls, a.Number)
	call.answer <- a
}

// away answers the calls in flight, but for those that wait.
func (c *Caller) away(why *api.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for number, call := range c.calls {
		if !c.later(number, call) {
			delete(c.calls, number)
			call.answer <- Answer{Error: why}
		}
	}
}

// later reports whether a call waits, and sends it again after a moment. c.mu is held.
func (c *Caller) later(number uint64, call *calling) bool {
	if call.again == nil {
		return false
	}
	if !call.due {
		call.due = true
		time.AfterFunc(againTime, func() { c.sendAgain(number) })
	}
	return true
}

// sendAgain sends a call that has not been answered or cancelled meanwhile.
func (c *Caller) sendAgain(number uint64) {
	c.mu.Lock()
	call := c.calls[number]
	if call != nil {
		call.due = false
	}
	c.mu.Unlock()
	if call != nil {
		_ = c.conn.Send(FromGate{Call: call.again}) // where the channel has ended, end refuses it
	}
}

// end refuses all calls, and those that come.
func (c *Caller) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for number, call := range c.calls {
		delete(c.calls, number)
		call.answer <- Answer{Error: gone()}
	}
}
