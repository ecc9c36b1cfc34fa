package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/rpc"
)

// Bounds of one connection. All of it is memory that a caller can make cloved hold; the
// sum over the connections of one user is the ledger's to bound.
const (
	// maxMessage is bytes of a line. What execve(2) takes at most fits, and with it what a
	// supervisor's connection passes on (rpc.MaxLine).
	maxMessage = 7<<20 + 512<<10
	maxSmall   = 64 << 10 // bytes of a line that starts no run and no command
	maxBatch   = 256      // requests in one line
	maxPending = 64       // lines, and requests, that are being answered; the next one waits
)

// conversation is the server's side of one connection. One goroutine reads lines and
// carries out notifications; each line that wants an answer has a goroutine. A line that is
// too long, or that there is no memory for, ends the connection. One that is wrong in
// other ways (nested too deeply, a key twice) is answered, and the next line is read.
type conversation struct {
	dispatch dispatcher
	peer     caller
	owes     *ledger
	ending   context.Context // ends when cloved is to end
	conn     *rpc.Conn
	alive    context.Context // ends with the connection
	pending  chan struct{}   // a place for each line that is being answered
	// running has a place for each request that is answered. It is not pending, because a
	// batch is one line with many requests.
	running chan struct{}
	spoken  chan struct{}  // something was answered; for linger
	all     sync.WaitGroup // lines that are being answered

	mu   sync.Mutex                    // guards the following
	last bool                          // close with the last answer that is owed
	open map[string]context.CancelFunc // by the ids of requests that are being answered
}

// newConversation makes what one connection needs; it starts nothing.
func (s *server) newConversation(alive context.Context, conn *rpc.Conn, peer caller, owes *ledger) *conversation {
	return &conversation{dispatch: s.dispatch, peer: peer, owes: owes, ending: s.ending, conn: conn, alive: alive, pending: make(chan struct{}, maxPending),
		running: make(chan struct{}, maxPending), spoken: make(chan struct{}, 1), open: map[string]context.CancelFunc{}}
}

// inputLine is one line of a caller's: one request, or a batch.
type inputLine struct {
	batch bool
	notes []rpc.Request // want no answer
	calls []task
	owed  *owed // with calls
}

// task is a request that wants an answer.
type task struct {
	rpc.Request
	ctx context.Context // ends with the connection, or when the request is cancelled
}

// id is that of a request that is alone in its line; nil: there is none.
func (l *inputLine) id() json.RawMessage {
	if l.batch || len(l.calls) != 1 {
		return nil
	}
	return l.calls[0].ID
}

// end closes the connection as soon as every request on it is answered.
func (c *conversation) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last = true; len(c.pending) == 0 {
		c.conn.Close()
	}
}

// next returns the next line that wants an answer, and has a place. Earlier lines are
// handled here, one after the other: nothing else would hold back a caller that sends
// more notifications, or rubbish, than is dealt with.
func (c *conversation) next() (*inputLine, error) {
	for {
		c.owes.drop() // the line before it, if nothing is owed for that
		// Bytes are counted before they are kept, so that many half lines cannot hold more
		// than a user may have.
		text, err := c.conn.LineWithin(maxMessage, c.owes.read)
		if errors.Is(err, rpc.ErrTooLong) {
			err = api.Failure(api.CodeTooLarge, "pass large values in files of the workspace", "a message has at most %d bytes", maxMessage)
		}
		var fault *api.Error
		if errors.As(err, &fault) {
			// Where the next line begins is not known any more.
			_ = c.refuse(nil, fault)
			return nil, io.EOF
		}
		// Half a line at the end is no request. Those before it are still answered.
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = io.EOF
		}
		if errors.Is(err, io.EOF) {
			c.linger()
		}
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		l, fault := read(text)
		if fault == nil {
			fault = c.admit(l)
		}
		if fault != nil {
			if err := c.refuse(l.id(), fault); err != nil {
				return nil, err
			}
			continue
		}
		// The requests of a batch are known by now: its notifications may cancel them.
		for _, r := range l.notes {
			c.notification(r)
		}
		if l.owed != nil {
			// Blocks while all places are taken. That is the whole back pressure: the
			// caller's next lines stay in the socket.
			c.pending <- struct{}{}
			return l, nil
		}
	}
}

// read refuses what no caller has a good reason to send.
func read(text []byte) (*inputLine, *api.Error) {
	l := &inputLine{}
	// First of all: it bounds nesting and refuses doubled keys, so that later
	// parsers cannot read the line in two ways.
	elements, err := rpc.Examine(text)
	switch {
	case err != nil:
		return l, api.Failure(api.CodeParse, "", "%v", err)
	case elements > maxBatch:
		return l, api.Failure(api.CodeTooLarge, "send less at once", "a batch has at most %d requests", maxBatch)
	}
	requests, batch := rpc.Requests(text)
	if len(requests) == 0 {
		return l, api.Failure(api.CodeRequest, "", "there is no request")
	}
	l.batch = batch
	for _, r := range requests {
		if r.Notification() {
			l.notes = append(l.notes, r)
		} else {
			l.calls = append(l.calls, task{Request: r})
		}
	}
	if len(text) > maxSmall && (batch || requests[0].Method != methods.RunStart.Name && requests[0].Method != methods.RunExec.Name) {
		// Else many requests that wait could hold much memory for one user. The answer has the
		// request's id: a caller with many requests under way waits for it.
		return l, api.Failure(api.CodeTooLarge, "send less at once", "a message other than %s or %s has at most %d bytes", methods.RunStart.Name, methods.RunExec.Name, maxSmall)
	}
	return l, nil
}

// admit counts a line's requests until they are answered. Each id can be cancelled from
// then on, and belongs to that request alone.
func (c *conversation) admit(l *inputLine) *api.Error {
	if len(l.calls) == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range l.calls {
		if c.open[string(r.ID)] != nil {
			return api.Failure(api.CodeRequest, "give each request an id of its own", "another request with the id %.64s is being answered", r.ID)
		}
	}
	var err error
	// The notifications count, too: they are held as long as the rest of their line.
	if l.owed, err = c.owes.begin(len(l.calls)+len(l.notes), l.batch); err != nil {
		return api.ErrorOf(err)
	}
	first := map[string]int{}
	for i, r := range l.calls {
		id := string(r.ID)
		if id == "" {
			continue // a message with a fault
		}
		if other, twice := first[id]; twice { // the caller could not assign the answers
			fault := &rpc.Fault{Code: rpc.CodeRequest, Message: "another request of the batch has the same id"}
			l.calls[other].Fault, l.calls[i].Fault = fault, fault
			continue
		}
		first[id] = i
		// A request may stay without a context. Such a one has a fault, which respond
		// answers first.
		l.calls[i].ctx, c.open[id] = context.WithCancel(c.alive)
	}
	return nil
}

// cancel ends the request with the id, if it is being answered.
func (c *conversation) cancel(id json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel := c.open[string(id)]; cancel != nil {
		cancel()
	}
}

// answer gives a line its answer, which has a part for each request.
func (c *conversation) answer(l *inputLine) {
	answers := make([]rpc.Message, len(l.calls))
	var all sync.WaitGroup
	for i, r := range l.calls[1:] {
		all.Go(func() { answers[i+1] = c.respond(r, l.owed) })
	}
	answers[0] = c.respond(l.calls[0], l.owed) // here: most lines have no other request
	all.Wait()
	c.release(l)                    // before the write: then its caller may use the ids again
	_ = c.send(l.batch, answers...) // a caller that has gone needs none
	c.owes.written(l.owed)
	c.answered() // behind the write: linger and end go by it
}

// respond makes the answer to one request.
func (c *conversation) respond(r task, owed *owed) rpc.Message {
	var result json.RawMessage
	var err error
	if r.Fault != nil {
		err = api.Failure(api.Code(r.Fault.Code), "docs/api.md says what a request looks like", "%s", r.Fault.Message)
	} else if err = hold(r.ctx, c.running); err == nil {
		result, err = c.serve(r, owed)
		<-c.running
	}
	if err == nil {
		return rpc.Message{ID: r.ID, Result: result}
	}
	fault, _ := json.Marshal(faultOf(err)) // of plain fields: it cannot fail
	return rpc.Message{ID: r.ID, Error: fault}
}

// release frees a line's ids, and ends the contexts of its requests.
func (c *conversation) release(l *inputLine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range l.calls {
		if cancel := c.open[string(r.ID)]; cancel != nil {
			cancel()
			delete(c.open, string(r.ID))
		}
	}
}

// answered gives a place back, and closes the connection behind the last answer where
// cloved ends.
func (c *conversation) answered() {
	<-c.pending
	select {
	case c.spoken <- struct{}{}:
	default: // linger will look anyway
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last && len(c.pending) == 0 {
		c.conn.Close()
	}
}

// send writes one line; a caller that does not read loses its connection.
func (c *conversation) send(batch bool, messages ...rpc.Message) error {
	return c.cut(c.conn.Deliver(batch, messages...))
}

// cut ends the connection of a caller that does not read. Its other answers could not be
// sent either, and each would wait as long.
func (c *conversation) cut(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.conn.Close()
	}
	return err
}

// refuse answers a line that goes no further; id is nil where it cannot be known.
func (c *conversation) refuse(id json.RawMessage, fault *api.Error) error {
	return c.cut(c.conn.Respond(id, nil, fault))
}

// note sends a notification of a stream. Parameters that are JSON already, as many lines of
// a log are, are not encoded again.
func (c *conversation) note(method string, params any) error {
	text, made := params.(json.RawMessage)
	if !made {
		var err error
		if text, err = json.Marshal(params); err != nil {
			return err
		}
	}
	return c.send(false, rpc.Message{Method: method, Params: text})
}

// linger keeps the connection of a caller that has ended its sending and still reads, as
// `nc -N` does, until all answers are sent or the caller has gone.
func (c *conversation) linger() {
	gone := make(chan struct{})
	defer c.conn.WhenGone(func() { close(gone) })()
	for len(c.pending) > 0 {
		select {
		case <-c.spoken:
		case <-gone:
			return
		}
	}
}
