package client

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/rpc"
)

// Share is a supervisor's way to what agents share, which cloved answers for. It is a
// runtime.Kernel.
type Share struct {
	client *Client

	mu      sync.Mutex // guards the following
	conn    *rpc.Conn  // of calls; nil: there is none at the moment
	last    uint64
	waiting map[string]chan rpc.Message // by the id of the request, for the connection that conn is
}

// NewShare uses the cloved of a client.
func NewShare(c *Client) *Share { return &Share{client: c} }

// attachAgain is between two attempts while cloved is away.
const attachAgain = 100 * time.Millisecond

// Attach makes the run ready, and calls changed with how it stands: once before it
// returns, after each change, and when cloved has been away.
func (s *Share) Attach(ctx context.Context, run agent.Run, changed func(api.Standing)) error {
	first := make(chan error, 1)
	go func() {
		begins := true
		for ctx.Err() == nil {
			err := s.attach(ctx, run.Spec.ID, begins, func(now api.Standing) {
				changed(now)
				if begins {
					begins = false
					first <- nil
				}
			})
			if begins {
				first <- err
				return
			}
			select {
			case <-time.After(attachAgain):
			case <-ctx.Done():
			}
		}
	}()
	return <-first
}

func (s *Share) attach(ctx context.Context, run agent.ID, begins bool, changed func(api.Standing)) error {
	return s.client.Stream(ctx, methods.KernelAttach.Name, api.KernelParams{Run: run, Begins: begins}, nil, notes(func(n api.StandingNote) error {
		changed(n.Standing)
		return nil
	}))
}

// away is the answer while cloved cannot be reached. Limits and deadlines hold meanwhile.
func away() error {
	return api.Failure(api.CodeBusy, "ask again with the same key", "cloved is away")
}

// Call answers a call of the run's agent. Many calls share one connection. The end of ctx cancels
// the call in cloved.
func (s *Share) Call(ctx context.Context, run agent.ID, method string, params json.RawMessage) (json.RawMessage, error) {
	text, err := json.Marshal(api.KernelCallParams{Run: run, Method: method, Params: params})
	if err != nil {
		return nil, err
	}
	id, conn, answer, err := s.enter(ctx)
	if err != nil {
		return nil, away()
	}
	defer s.forget(id)
	if conn.Send(rpc.Message{ID: json.RawMessage(id), Method: methods.KernelCall.Name, Params: text}) != nil {
		s.lose(conn)
		return nil, away()
	}
	select {
	case m, open := <-answer:
		switch {
		case !open:
			return nil, away()
		case len(m.Error) > 0:
			return nil, api.ParseError(m.Error)
		}
		return m.Result, nil
	case <-ctx.Done():
		cancelled, err := json.Marshal(api.CancelParams{ID: json.RawMessage(id)})
		if err == nil && conn.Send(rpc.Message{Method: api.MethodCancel, Params: cancelled}) != nil {
			s.lose(conn)
		}
		return nil, api.Failure(api.CodeCancelled, "", "the call was cancelled")
	}
}

// Meter reports what the Linux kernel has counted of the run.
func (s *Share) Meter(ctx context.Context, run agent.ID, start int, totals map[string]int64) error {
	return s.client.Call(ctx, methods.KernelMeter.Name, api.KernelMeterParams{Run: run, Start: start, Totals: totals}, nil)
}

// enter numbers a call, and connects if nothing is connected.
func (s *Share) enter(ctx context.Context) (id string, conn *rpc.Conn, answer chan rpc.Message, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		if s.conn, err = s.client.connect(ctx); err != nil {
			s.conn = nil
			return "", nil, nil, err
		}
		s.waiting = map[string]chan rpc.Message{}
		go s.receive(s.conn, s.waiting)
	}
	s.last++
	number, _ := json.Marshal(s.last) // a number: it cannot fail
	answer = make(chan rpc.Message, 1)
	s.waiting[string(number)] = answer
	return string(number), s.conn, answer, nil
}

func (s *Share) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, id)
}

// receive gives each answer to its call until the connection ends.
func (s *Share) receive(conn *rpc.Conn, waiting map[string]chan rpc.Message) {
	for {
		m, err := conn.Receive()
		if err != nil {
			break
		}
		s.mu.Lock()
		if answer := waiting[string(m.ID)]; answer != nil {
			delete(waiting, string(m.ID))
			answer <- m // it has room
		}
		s.mu.Unlock()
	}
	s.lose(conn)
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, answer := range waiting {
		delete(waiting, id)
		close(answer)
	}
}

// lose closes a connection that failed; the next call makes another.
func (s *Share) lose(conn *rpc.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	conn.Close()
	if s.conn == conn {
		s.conn = nil
	}
}

// Close ends the connection of calls.
func (s *Share) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
	return nil
}
