// Package attach passes a supervisor's listeners, for models and for tools, to cloved, which serves them,
// over models.sock, a socket that root alone may use. While cloved is away, connections wait in the
// listener, of which the supervisor keeps a copy.
package attach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/internal/packet"
)

// Socket is the name of the socket, in cloved's run directory.
const Socket = "models.sock"

// request is a supervisor's message: first the run, with the listener; at the agent's end
// the question what was used.
type request struct {
	Run  agent.ID `json:"run,omitempty"`
	For  For      `json:"for,omitempty"`
	Used bool     `json:"used,omitempty"`
}

// For is what a listener is for.
type For string

// What listeners are for.
const (
	Models For = ""
	Tools  For = "tools"
)

// reply is cloved's.
type reply struct {
	Error string           `json:"error,omitempty"`
	Used  []agent.ModelUse `json:"used,omitempty"`
	SoFar []agent.ModelUse `json:"so_far,omitempty"` // unasked
}

// Client is a runtime.Models and a runtime.Tools that cloved's socket leads to.
type Client struct{ path string }

// NewClient uses the socket in a run directory.
func NewClient(runDir string) *Client { return &Client{filepath.Join(runDir, Socket)} }

// again is between two attempts while cloved is away.
const again = 200 * time.Millisecond

// Serve has cloved serve the run until ctx ends, also a cloved that starts later. used has what
// all of them have counted.
func (c *Client) Serve(ctx context.Context, run agent.Run, listener *os.File) (used func() []agent.ModelUse, err error) {
	s, err := c.serve(ctx, request{Run: run.Spec.ID}, listener)
	if err != nil {
		return nil, err
	}
	return s.used, nil
}

// ServeTools has cloved serve the run's door to tools until ctx ends, also a cloved that starts later.
func (c *Client) ServeTools(ctx context.Context, run agent.Run, listener *os.File) error {
	_, err := c.serve(ctx, request{Run: run.Spec.ID, For: Tools}, listener)
	return err
}

func (c *Client) serve(ctx context.Context, r request, listener *os.File) (*session, error) {
	conn, err := c.begin(r, listener)
	if err != nil {
		listener.Close()
		return nil, err
	}
	s := &session{client: c, request: r, listener: listener, conn: conn, over: make(chan struct{}), replies: make(chan reply, 1)}
	go s.keep(ctx)
	return s, nil
}

// session is one run's, over as many connections as it takes.
type session struct {
	client   *Client
	request  request
	listener *os.File
	replies  chan reply

	mu     sync.Mutex // guards the following
	conn   *packet.Conn
	over   chan struct{}    // closed when all that came on conn was taken
	before []agent.ModelUse // what those before this cloved have counted
	soFar  []agent.ModelUse // what this one has
}

// keep has a cloved serve the run until ctx ends.
func (s *session) keep(ctx context.Context) {
	defer s.listener.Close()
	for {
		s.hold(ctx)
		for ctx.Err() == nil {
			conn, err := s.client.begin(s.request, s.listener)
			if err == nil {
				s.change(conn)
				break
			}
			select {
			case <-time.After(again):
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			conn, _ := s.current()
			conn.Close() // a connection that came meanwhile; else it is closed already
			return
		}
	}
}

// change goes on with another cloved.
func (s *session) change(conn *packet.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn, s.over = conn, make(chan struct{})
	s.before, s.soFar = plus(s.before, s.soFar), nil
}

func (s *session) current() (conn *packet.Conn, over chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn, s.over
}

// hold takes replies until cloved is gone, or ctx ends.
func (s *session) hold(ctx context.Context) {
	conn, over := s.current()
	defer close(over)
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	defer conn.Close()
	for {
		var r reply
		files, err := conn.Receive(&r)
		packet.CloseAll(files)
		if err != nil {
			return
		}
		if r.SoFar != nil {
			s.note(r.SoFar)
			continue
		}
		select {
		case s.replies <- r:
		default: // nobody asked
		}
	}
}

// usedTime bounds the wait for what was used: cloved may be away, and the record waits.
const usedTime = 5 * time.Second

func (s *session) used() []agent.ModelUse {
	conn, over := s.current()
	answers := s.replies
	if conn.Send(request{Used: true}) != nil {
		answers = nil // that cloved is gone: its last figures may still be on their way
	}
	select {
	case r := <-answers:
		s.note(r.Used)
	case <-over:
		select {
		case r := <-answers: // the last that it said
			s.note(r.Used)
		default:
		}
	case <-time.After(usedTime):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return plus(s.before, s.soFar)
}

func (s *session) note(soFar []agent.ModelUse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.soFar = soFar
}

// plus adds what was used, model by model.
func plus(a, b []agent.ModelUse) []agent.ModelUse {
	sum := slices.Clone(a)
	for _, use := range b {
		at, found := slices.BinarySearchFunc(sum, use.Model, func(u agent.ModelUse, model string) int { return cmp.Compare(u.Model, model) })
		if !found {
			sum = slices.Insert(sum, at, use)
			continue
		}
		sum[at] = sum[at].Plus(use)
	}
	return sum
}

// begin passes the listener.
func (c *Client) begin(first request, listener *os.File) (*packet.Conn, error) {
	conn, err := packet.Dial(c.path)
	if err != nil {
		return nil, fmt.Errorf("cannot be served by cloved: %w", err)
	}
	var r reply
	err = conn.Send(first, listener)
	if err == nil {
		var files []*os.File
		files, err = conn.Receive(&r)
		packet.CloseAll(files)
	}
	if err == nil && r.Error != "" {
		err = errors.New(r.Error)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("cannot be served by cloved: %w", err)
	}
	return conn, nil
}
