package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"reflect"
	"sync"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/internal/rpc"
)

// Client reaches one cloved.
type Client struct {
	path string

	mu   sync.Mutex // guards the following
	idle []*rpc.Conn
}

// maxIdle is how many connections are kept for later.
const maxIdle = 8

// Dial connects to the cloved at path. The error is of KindNotFound when
// no process listens there.
func Dial(ctx context.Context, path string) (*Client, error) {
	c := &Client{path: path}
	conn, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	c.keep(conn)
	return c, nil
}

// At is a client of the cloved at path, which need not run yet.
func At(path string) *Client { return &Client{path: path} }

// Close ends the connections that no call uses.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.idle {
		conn.Close()
	}
	c.idle = nil
	return nil
}

// connect makes a connection, or an error that says what to do.
func (c *Client) connect(ctx context.Context) (*rpc.Conn, error) {
	conn, err := rpc.Dial(ctx, c.path)
	switch {
	case err == nil:
		return conn, nil
	// Refused: a socket that a killed cloved has left.
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED):
		return nil, absent{&agent.Error{Kind: agent.KindNotFound, Message: "cloved does not run (" + c.path + ")", Hint: agent.StartCloved()}}
	case errors.Is(err, fs.ErrPermission):
		return nil, &agent.Error{Kind: agent.KindPrivilege, Message: "you may not use cloved (" + c.path + ")",
			Hint: "become a member of its group (sudo usermod -aG clove USER, then log in again), or use sudo"}
	}
	return nil, &agent.Error{Kind: agent.KindInternal, Message: "cannot reach cloved", Err: err}
}

// absent is the error where nothing listens.
type absent struct{ cause *agent.Error }

func (a absent) Error() string { return a.cause.Error() }
func (a absent) Unwrap() error { return a.cause }

// take returns an idle connection, or a new one, and whether it was idle.
func (c *Client) take(ctx context.Context) (*rpc.Conn, bool, error) {
	c.mu.Lock()
	if n := len(c.idle); n > 0 {
		conn := c.idle[n-1]
		c.idle = c.idle[:n-1]
		c.mu.Unlock()
		return conn, true, nil
	}
	c.mu.Unlock()
	conn, err := c.connect(ctx)
	return conn, false, err
}

// keep puts a connection aside for the next call. Its last answer must have been read.
func (c *Client) keep(conn *rpc.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.idle) < maxIdle {
		c.idle = append(c.idle, conn)
		return
	}
	conn.Close()
}

// Call asks for one method. A connection that was idle may have been closed by
// a cloved that ended: when not even the request could be sent, another is made.
func (c *Client) Call(ctx context.Context, method string, params, result any) error {
	conn, kept, err := c.take(ctx)
	if err != nil {
		return err
	}
	err = request(ctx, conn, method, params)
	// Only of an idle connection, and only where cloved cannot have got the request:
	// anything else could be done twice.
	if kept && rpc.IsGone(err) {
		conn.Close()
		if conn, err = c.connect(ctx); err != nil {
			return err
		}
		err = request(ctx, conn, method, params)
	}
	if err != nil {
		conn.Close()
		return lost(err)
	}
	err = conn.Answer(ctx, result, nil, fault)
	var answered *api.Error
	// An error of cloved's is an answer, and the connection is as good as before. After any
	// other one, the rest of an answer could still come.
	if err != nil && !errors.As(err, &answered) {
		conn.Close()
		return lost(err)
	}
	if ctx.Err() != nil { // it ended just behind the answer, and may be closing the connection
		conn.Close()
		return err
	}
	c.keep(conn)
	return err
}

// Stream asks for a method that notifies before it answers. It has a connection of its own:
// closing that is how ctx, or an error of note, ends the stream.
func (c *Client) Stream(ctx context.Context, method string, params, result any, note func(method string, params json.RawMessage) error) error {
	conn, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := request(ctx, conn, method, params); err != nil {
		return lost(err)
	}
	return lost(conn.Answer(ctx, result, func(m rpc.Message) error { return note(m.Method, m.Params) }, fault))
}

// request sends a request. cloved refuses a caller as soon as it connects and
// closes the connection: the answer to a request that could not be sent any more is there already.
//
// JSON has no bytes that are not UTF-8, and encoding/json replaces them: the request would
// name another file. So it is refused.
func request(ctx context.Context, conn *rpc.Conn, method string, params any) error {
	if err := checkText("", reflect.ValueOf(params)); err != nil {
		return err
	}
	err := conn.Request(method, params)
	if !rpc.IsGone(err) {
		return err
	}
	var refused *api.Error
	if errors.As(conn.Answer(ctx, nil, nil, fault), &refused) {
		return refused
	}
	return err
}

// fault is what rpc.Conn makes of an error object.
func fault(text json.RawMessage) error { return api.ParseError(text) }

// notes gives each notification of a stream to each, as what it is.
func notes[N any](each func(N) error) func(string, json.RawMessage) error {
	return func(_ string, text json.RawMessage) error {
		var note N
		if err := json.Unmarshal(text, &note); err != nil {
			return err
		}
		return each(note)
	}
}

// lost is the error for a cloved that ended before its answer.
func lost(err error) error {
	if rpc.IsGone(err) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &agent.Error{Kind: agent.KindBusy, Message: "cloved ended before it answered", Err: err,
			Hint: "agents continue to run; clove ps shows them when cloved is back"}
	}
	return err
}
