package socket

import (
	"encoding/json"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"clove.run/clove/api"
	"clove.run/clove/kernel/channel"
)

const (
	// MaxConnections is how many connections an agent may have.
	MaxConnections = 32
	// idleTime is how long a connection is kept that is silent when another one needs its
	// place.
	idleTime = time.Second
	// callsPerSecond bounds what one agent costs processes that are not in its cgroup.
	callsPerSecond = 5000
	callsBurst     = 500
)

// Server serves one agent's socket.
type Server struct {
	channel *channel.Conn
	allow   ids
	rate    *rate.Limiter

	mu          sync.Mutex // guards the fields below
	last        uint64     // number of the newest call
	calls       map[uint64]*pending
	connections map[*connection]bool
	queue       queue // notifications that no connection has listened to
}

// pending is a call in flight.
type pending struct {
	connection *connection
	id         json.RawMessage
	// again is the call of a method that waits: it is sent again when the process that would answer
	// has gone. nil: it is answered then.
	again *channel.Call
	due   bool // it is about to be sent again
}

// againTime is between a call that waits and the next attempt to have it answered.
const againTime = 200 * time.Millisecond

// New makes a server for the agent whose host ids begin at first. The calls of the
// agent go to calls.
func New(calls *channel.Conn, first, count uint32) *Server {
	return &Server{channel: calls, allow: ids{first, count}, rate: rate.NewLimiter(callsPerSecond, callsBurst),
		calls: map[uint64]*pending{}, connections: map[*connection]bool{}}
}

// Accept serves connections until the listener is closed.
func (s *Server) Accept(listener *net.UnixListener) {
	for {
		conn, err := listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(idleTime / 10) // no descriptor is free: see egress/gate's acceptBackoff
			continue
		}
		s.begin(conn)
	}
}

// begin serves a connection, or refuses it where there are too many.
func (s *Server) begin(conn *net.UnixConn) {
	c := &connection{server: s, conn: conn, used: time.Now()}
	s.mu.Lock()
	full := len(s.connections) >= MaxConnections
	if full {
		full = !s.evict()
	}
	if !full {
		s.connections[c] = true
	}
	s.mu.Unlock()
	if full {
		c.fail(nil, api.Failure(api.CodeBusy, "close one first", "the agent has %d connections already", MaxConnections))
		c.out.close(conn)
		return
	}
	go c.serve()
}

// evict closes the connection that was silent longest, if one was for idleTime, has no
// call in flight and does not listen. s.mu is held.
func (s *Server) evict() bool {
	var oldest *connection
	for c := range s.connections {
		if c.flying == 0 && !c.listens && time.Since(c.used) >= idleTime && (oldest == nil || c.used.Before(oldest.used)) {
			oldest = c
		}
	}
	if oldest == nil {
		return false
	}
	delete(s.connections, oldest)
	oldest.conn.Close()
	return true
}

// forget removes a connection that has ended, and cancels its calls.
func (s *Server) forget(c *connection) {
	s.mu.Lock()
	delete(s.connections, c)
	var cancelled []uint64
	for number, call := range s.calls {
		if call.connection == c {
			delete(s.calls, number)
			cancelled = append(cancelled, number)
		}
	}
	s.mu.Unlock()
	for _, number := range cancelled {
		_ = s.channel.Send(channel.FromGate{Cancel: number}) // without a channel the gate ends
	}
}

// enter numbers a call, unless there are too many.
func (s *Server) enter(c *connection, id json.RawMessage, call channel.Call, waits bool) (uint64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.calls) >= channel.MaxCalls {
		return 0, false
	}
	s.last++
	p := &pending{connection: c, id: id}
	if call.Number = s.last; waits {
		p.again = &call
	}
	s.calls[s.last] = p
	c.flying++
	return s.last, true
}

// leave takes a call out; nil: it was cancelled.
func (s *Server) leave(number uint64) *pending {
	s.mu.Lock()
	defer s.mu.Unlock()
	call := s.calls[number]
	if call != nil {
		delete(s.calls, number)
		call.connection.flying--
	}
	return call
}

// Receive passes answers and notifications on until the channel ends.
func (s *Server) Receive() error {
	for {
		var m channel.ToGate
		if err := s.channel.Receive(&m); err != nil {
			return err
		}
		switch {
		case m.Answer != nil:
			if m.Answer.Error != nil && m.Answer.Error.Code == api.CodeBusy && s.later(m.Answer.Number) {
				continue
			}
			if call := s.leave(m.Answer.Number); call != nil {
				call.connection.answer(call.id, *m.Answer)
			}
		case m.Notice != nil:
			s.notify(*m.Notice)
		case m.Away != nil:
			s.away(m.Away)
		}
	}
}

// later reports whether a call waits, and sends it again after a moment.
func (s *Server) later(number uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	call := s.calls[number]
	if call == nil || call.again == nil {
		return false
	}
	if !call.due {
		call.due = true
		time.AfterFunc(againTime, func() { s.sendAgain(number) })
	}
	return true
}

// sendAgain sends a call that has not been cancelled meanwhile.
func (s *Server) sendAgain(number uint64) {
	s.mu.Lock()
	call := s.calls[number]
	if call != nil {
		call.due = false
	}
	s.mu.Unlock()
	if call != nil {
		_ = s.channel.Send(channel.FromGate{Call: call.again}) // without a channel the gate ends
	}
}

// away answers the calls in flight, but for those that wait.
func (s *Server) away(why *api.Error) {
	calls := map[uint64]*pending{}
	s.mu.Lock()
	all := slices.Collect(maps.Keys(s.calls))
	s.mu.Unlock()
	for _, number := range all {
		if s.later(number) {
			continue
		}
		if call := s.leave(number); call != nil {
			calls[number] = call
		}
	}
	for _, call := range calls {
		call.connection.fail(call.id, why)
	}
}

// notify sends a notification to each connection that listens, or keeps it for the first
// one that will. Sending never waits, so it happens under the lock, which keeps the order.
func (s *Server) notify(n channel.Notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	listened := false
	for c := range s.connections {
		if c.listens {
			listened = true
			c.note(n.Notice)
		}
	}
	if !listened {
		s.queue.put(n)
	}
}
