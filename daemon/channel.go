package daemon

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/creachadair/jrpc2"

	"clove.run/clove/api"
	"clove.run/clove/internal/rpc"
)

// What one connection may do.
const (
	maxMessage = 1 << 20  // bytes of a line
	maxSmall   = 64 << 10 // bytes of a line that starts no run
	maxDepth   = 64       // of nested objects and arrays
	maxBatch   = 256      // requests in one line
	maxPending = 64       // lines that are being answered; the next one waits
	noteTime   = 10 * time.Second
	writeTime  = 30 * time.Second // for a caller that does not read
)

// channel carries lines between a connection and the JSON-RPC library. What
// the library would take too kindly ends here: a line that is too long, nests
// too deeply, names a key twice, or comes while too many wait.
type channel struct {
	conn  *rpc.Conn
	first []byte // a line that Recv gave already, and gives once more
	// notify acts on a notification. It is done here, one after the other:
	// nothing else would hold back a caller that sends more than is done.
	notify  func(method string, params json.RawMessage)
	pending chan struct{} // a place for each line that is being answered
	spoken  chan struct{} // something was answered
	owes    *ledger

	mu     sync.Mutex // one line after the other, and guards the following
	ending bool       // close with the last answer that is owed
}

func newChannel(conn *rpc.Conn, owes *ledger, notify func(string, json.RawMessage)) *channel {
	return &channel{conn: conn, owes: owes, notify: notify, pending: make(chan struct{}, maxPending), spoken: make(chan struct{}, 1)}
}

// end closes the connection as soon as nothing is owed on it.
func (c *channel) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending = true; len(c.pending) == 0 {
		c.conn.Close()
	}
}

// Recv returns the next sound line. One that is not is answered here.
func (c *channel) Recv() ([]byte, error) {
	if line := c.first; line != nil {
		c.first = nil
		return line, nil
	}
	for {
		c.owes.drop() // the line before it, if nothing is owed for that
		line, err := c.conn.LineWithin(maxMessage, c.owes.read)
		if errors.Is(err, rpc.ErrTooLong) {
			err = api.Failure(api.CodeTooLarge, "send less at once", "a message has at most %d bytes", maxMessage)
		}
		var fault *api.Error
		if errors.As(err, &fault) {
			// Where the next line begins is not known any more.
			_ = c.refuse("", fault)
			return nil, io.EOF
		}
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = io.EOF
		}
		if errors.Is(err, io.EOF) {
			c.linger()
		}
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if fault = examine(line); fault != nil {
			if err := c.refuse("", fault); err != nil {
				return nil, err
			}
			continue
		}
		notes, only := notifications(line)
		requests, err := c.accept(line, only)
		if errors.As(err, &fault) {
			err = c.refuse(idOf(requests), fault)
			if err == nil {
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		if !only {
			c.pending <- struct{}{}
			return line, nil
		}
		if len(notes) == 1 && notes[0].Method == api.MethodCancel {
			// The library knows whether the request before it is being answered
			// yet; it is done with in no time.
			return line, nil
		}
		for _, m := range notes {
			c.notify(m.Method, m.Params)
		}
	}
}

// notifications returns the messages of a line of which none wants an answer.
func notifications(line []byte) (notes []rpc.Message, only bool) {
	if bytes.TrimSpace(line)[0] == '[' {
		if json.Unmarshal(line, &notes) != nil {
			return nil, false
		}
	} else {
		notes = make([]rpc.Message, 1)
		if json.Unmarshal(line, &notes[0]) != nil {
			return nil, false
		}
	}
	for _, m := range notes {
		// What is no request at all deserves an answer.
		if len(m.ID) > 0 && string(m.ID) != "null" || m.Method == "" || m.JSONRPC != rpc.Version {
			return nil, false
		}
	}
	return notes, len(notes) > 0
}

// Send writes one line; a caller that does not read loses its connection.
func (c *channel) Send(line []byte) error {
	if bytes.HasPrefix(line, pushed) {
		return c.send(line)
	}
	owed := c.owes.answered(line) // before the write: then its caller may use the id again
	if bytes.Contains(line, []byte(`"error":{`)) {
		line = complete(line)
	}
	err := c.send(line)
	c.owes.written(owed)
	c.answered() // behind the write: linger and end go by it
	return err
}

// answered gives a place back.
func (c *channel) answered() {
	select {
	case <-c.pending:
	default: // the answer to a line that was given no place
	}
	c.said()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending && len(c.pending) == 0 {
		c.conn.Close()
	}
}

func (c *channel) send(line []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.conn.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return err
	}
	whole := net.Buffers{line, lineEnd} // a long answer is not copied for one byte
	_, err := whole.WriteTo(c.conn.Conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.conn.Close()
	}
	return err
}

var lineEnd = []byte{'\n'}

// pushed is how the library writes a notification of ours.
var pushed = []byte(`{"jsonrpc":"2.0","method"`)

func (c *channel) Close() error { return c.conn.Close() }

// refuse answers a line that goes no further; id is empty where it cannot be known.
func (c *channel) refuse(id string, fault *api.Error) error {
	text, err := json.Marshal(fault)
	if err != nil {
		return err
	}
	line, err := json.Marshal(rpc.Message{JSONRPC: rpc.Version, ID: json.RawMessage(cmp.Or(id, "null")), Error: text})
	if err != nil {
		return err
	}
	return c.send(line)
}

// examine refuses what no caller has a good reason to send.
func examine(line []byte) *api.Error {
	batch, err := walk(line)
	switch {
	case err != nil:
		return api.Failure(api.CodeParse, "send one JSON object a line", "%v", err)
	case batch > maxBatch:
		return api.Failure(api.CodeTooLarge, "send less at once", "a batch has at most %d requests", maxBatch)
	case len(line) > maxSmall && !startsOne(line):
		// Else many requests that wait could hold much memory for one user.
		return api.Failure(api.CodeTooLarge, "send less at once", "a message other than %s or %s has at most %d bytes", api.MethodRunStart, api.MethodRunExec, maxSmall)
	}
	return nil
}

// unanswerable rejects an empty batch and a malformed notification, for example one whose
// parameters are not an object. The library would answer these with an error. It also
// processes queued notifications after the connection has closed, when its channel is nil:
// that answer would be a nil dereference and end cloved.
func unanswerable(line []byte) ([]*jrpc2.ParsedRequest, error) {
	requests, err := jrpc2.ParseRequests(line)
	if err != nil || len(requests) == 0 {
		return nil, api.Failure(api.CodeRequest, "docs/api.md says what a request looks like", "there is no request")
	}
	for _, r := range requests {
		if r.ID == "" && r.Method != "" && r.Error != nil {
			return nil, api.Failure(api.CodeRequest, "docs/api.md says what a request looks like", "%.64q is no notification: %s", r.Method, r.Error.Message)
		}
	}
	return requests, nil
}

// accept counts a line whose requests are to be answered. With an error of the
// contract it is refused instead.
func (c *channel) accept(line []byte, notes bool) ([]*jrpc2.ParsedRequest, error) {
	requests, err := unanswerable(line)
	if err == nil && !notes {
		err = c.owes.begin(requests)
	}
	return requests, err
}

// idOf is the id of a request that is alone in its line; empty: there is none.
func idOf(requests []*jrpc2.ParsedRequest) string {
	if len(requests) == 1 && !requests[0].Batch {
		return requests[0].ID
	}
	return ""
}

// startsOne tells whether a line is one request that has a reason to be large.
func startsOne(line []byte) bool {
	var m rpc.Message
	return json.Unmarshal(line, &m) == nil && (m.Method == api.MethodRunStart || m.Method == api.MethodRunExec)
}

// folded is how deep keys are compared without their case: a batch, a request,
// its parameters.
const folded = 3

// nesting is one object or array that is being walked through.
type nesting struct {
	keys  map[string]bool // nil: an array
	value bool            // of an object: a key was read, its value comes
}

// key takes in a key of an object that is depth deep.
//
// Go's decoder takes "Run" for "run", also beside it: what a request says must
// not depend on who reads it, so in the request and its parameters two keys may
// not differ in case alone. Deeper there are names of the caller's own.
func (n *nesting) key(key string, depth int) error {
	if depth <= folded {
		key = strings.ToLower(key)
	}
	if n.keys[key] {
		return fmt.Errorf("the key %.64q is there twice", key)
	}
	n.keys[key], n.value = true, true
	return nil
}

// walker is the way through a document: what is open at the moment.
type walker struct {
	open     []nesting
	elements int // of the outermost array
}

// walk goes through all of a document and returns how many elements the
// outermost array has; 0 for an object.
func walk(line []byte) (elements int, err error) {
	if !utf8.Valid(line) {
		return 0, errors.New("it is not UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	var w walker
	for begun := false; ; begun = true {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) && len(w.open) == 0 && begun {
			return w.elements, nil
		}
		if err != nil {
			return 0, errors.New("it is not JSON")
		}
		if err := w.take(token); err != nil {
			return 0, err
		}
		if len(w.open) == 0 && decoder.More() {
			return 0, errors.New("there is something behind it")
		}
	}
}

// take goes one token on. The decoder has seen to the grammar.
func (w *walker) take(token json.Token) error {
	delim, isDelim := token.(json.Delim)
	if isDelim && (delim == '}' || delim == ']') {
		w.open = w.open[:len(w.open)-1]
		return nil
	}
	if len(w.open) > 0 {
		top := &w.open[len(w.open)-1]
		if top.keys != nil && !top.value {
			return top.key(token.(string), len(w.open)) // the decoder allows nothing else
		}
		if top.keys == nil && len(w.open) == 1 {
			w.elements++
		}
		top.value = false
	}
	if isDelim {
		return w.enter(delim)
	}
	if len(w.open) == 0 {
		return errors.New("it is neither an object nor an array")
	}
	return nil
}

// enter begins an object or array.
func (w *walker) enter(delim json.Delim) error {
	if len(w.open) == maxDepth {
		return fmt.Errorf("it nests more than %d deep", maxDepth)
	}
	next := nesting{}
	if delim == '{' {
		next.keys = map[string]bool{}
	}
	w.open = append(w.open, next)
	return nil
}
