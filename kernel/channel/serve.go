package channel

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"clove.run/clove/api"
)

// Handler decides one call of the agent. ctx ends when the caller has gone, has cancelled the call, or
// Serve is to end.
type Handler func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)

// Serve answers the calls that come on c, beside each other, until ctx ends or the gate is gone, which
// is io.EOF. It returns when every call is answered. Calls that it has not read stay in c, for the next
// Serve.
func (c *Conn) Serve(ctx context.Context, handler Handler) error {
	calls, cancel := context.WithCancel(ctx)
	s := &serving{conn: c, handler: handler, ctx: calls, sendTime: sendTime, placeTime: placeTime, places: make(chan struct{}, MaxCalls), flying: map[uint64]context.CancelFunc{}}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		s.interrupt()
		close(interrupted)
	})
	err := s.receive()
	cancel()
	s.all.Wait()
	if !stop() {
		<-interrupted
		err = nil
	}
	return errors.Join(err, c.File().SetDeadline(time.Time{}))
}

// interrupt ends receive.
func (s *serving) interrupt() { _ = s.conn.File().SetReadDeadline(time.Now()) }

// serving is one Serve.
type serving struct {
	conn     *Conn
	handler  Handler
	ctx      context.Context
	sendTime time.Duration  // bounds the wait for a gate that reads no answers
	all      sync.WaitGroup // calls that are being answered

	placeTime time.Duration // bounds the wait for a place
	places    chan struct{} // has an element for each call in flight

	mu     sync.Mutex // guards the following
	flying map[uint64]context.CancelFunc
}

func (s *serving) receive() error {
	for {
		var m FromGate
		if err := s.conn.Receive(&m); err != nil {
			return err
		}
		switch {
		case m.Call != nil:
			s.begin(*m.Call)
		case m.Cancel != 0:
			s.cancel(m.Cancel)
		}
	}
}

// placeTime is how long a call waits for a place. The gate takes the place of a call for free as soon as
// it has the answer, or has cancelled it; here it is free a moment later.
const placeTime = time.Second

// begin answers a call beside others. The gate keeps the bound too, but it may have been taken over. A
// call too many is answered here: a gate that reads no answers is not read either.
func (s *serving) begin(c Call) {
	ctx := s.enter(c.Number)
	if ctx == nil {
		return
	}
	if !s.place() {
		s.forget(c.Number)
		s.answer(c.Number, nil, api.Failure(api.CodeBusy, "", "%d calls of the agent are in flight already", MaxCalls))
		return
	}
	s.all.Go(func() {
		result, err := s.handler(ctx, c.Method, c.Params)
		s.answer(c.Number, result, err)
		s.forget(c.Number)
		<-s.places
	})
}

// place takes a place, or reports that all stay taken.
func (s *serving) place() bool {
	select {
	case s.places <- struct{}{}:
		return true
	default:
	}
	select {
	case s.places <- struct{}{}:
		return true
	case <-time.After(s.placeTime):
		return false
	}
}

// enter returns the context of a call; nil: its number is under way.
func (s *serving) enter(number uint64) (ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flying[number] != nil {
		return nil
	}
	ctx, s.flying[number] = context.WithCancel(s.ctx)
	return ctx
}

// cancel cancels a call. It keeps its place until it has ended.
func (s *serving) cancel(number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.flying[number]; cancel != nil {
		cancel()
	}
}

func (s *serving) forget(number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flying[number]()
	delete(s.flying, number)
}

// sendTime is that of every Serve. A gate that reads no answers for so long was taken over.
const sendTime = 30 * time.Second

// answer sends an answer, or why it cannot be sent. A gate that reads none ends the Serve.
func (s *serving) answer(number uint64, result json.RawMessage, err error) {
	a := Answer{Number: number, Result: result}
	if err != nil {
		a = Answer{Number: number, Error: api.ErrorOf(err)}
	}
	_ = s.conn.File().SetWriteDeadline(time.Now().Add(s.sendTime))
	err = s.conn.Send(ToGate{Answer: &a})
	if errors.Is(err, ErrTooLong) {
		a = Answer{Number: number, Error: api.Failure(api.CodeTooLarge, "ask for less at once", "the answer is too long")}
		err = s.conn.Send(ToGate{Answer: &a})
	}
	if err != nil {
		s.interrupt()
	}
}
