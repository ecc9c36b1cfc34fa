// Package rpc is JSON-RPC 2.0 on one connection, one object or batch a line, for both sides of each
// of clove's sockets. It has a caller's calls one after the other, streams of notifications,
// sessions that send in both directions, and for a server the requests of a line (Requests).
//
// It is linked with clove, which starts itself again inside each sandbox, so it brings
// no other package's initialisation along. It does not dispatch: cloved answers many
// requests of a connection at once, a supervisor one after the other.
//
// It refuses lines longer than the connection's limit, and documents that two readers
// could understand differently (Examine).
package rpc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Version is the only one.
const Version = "2.0"

// MaxLine bounds a line that is received; a spec with a seccomp document and a
// large environment fits many times.
const MaxLine = 8 << 20

// Message is a request, a notification or a response.
type Message struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
}

// ErrTooLong says that a line passed its reader's limit.
var ErrTooLong = errors.New("the message is too long")

// ErrGone says that the other side ended the conversation before it answered.
var ErrGone = errors.New("the other side has gone")

// IsGone reports whether err, of sending or receiving, means that the other side
// has gone. A listener that is closed resets the connections that were not
// accepted yet (unix(7)).
func IsGone(err error) bool {
	return errors.Is(err, ErrGone) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

// Conn is one connection. Sending is safe from any goroutine, receiving is
// for one at a time.
type Conn struct {
	net.Conn
	lines *bufio.Reader
	send  sync.Mutex // one message after the other
}

// New holds the conversation on conn.
func New(conn net.Conn) *Conn {
	return &Conn{Conn: conn, lines: bufio.NewReaderSize(conn, 4<<10)}
}

// Behind holds the conversation on a connection of which rest was read already.
func Behind(rest []byte, conn net.Conn) *Conn {
	return &Conn{Conn: conn, lines: bufio.NewReaderSize(io.MultiReader(bytes.NewReader(rest), conn), 4<<10)}
}

// Dial connects to the Unix socket at path.
func Dial(ctx context.Context, path string) (*Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	return New(conn), nil
}

// Line returns the next line, at most limit bytes long.
func (c *Conn) Line(limit int) ([]byte, error) {
	return c.LineWithin(limit, func(int) error { return nil })
}

// LineWithin is Line for a reader that has to find room: before each part of the
// line is kept, room is asked for its bytes. Its error is returned, and the rest of
// the line is still to come.
func (c *Conn) LineWithin(limit int, room func(bytes int) error) ([]byte, error) {
	var line []byte
	for {
		part, err := c.lines.ReadSlice('\n')
		// Before the part is kept: a line without an end never takes more memory than the
		// limit.
		if len(line)+len(part) > limit {
			return nil, ErrTooLong
		}
		if err := room(len(part)); err != nil {
			return nil, err
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return bytes.TrimSuffix(line, []byte("\n")), nil
		case errors.Is(err, io.EOF) && len(line) > 0:
			return nil, io.ErrUnexpectedEOF
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// Buffered returns what has been read from the connection and not been used.
func (c *Conn) Buffered() []byte {
	rest, _ := c.lines.Peek(c.lines.Buffered())
	return rest
}

// Receive returns the next message.
func (c *Conn) Receive() (m Message, err error) {
	line, err := c.Line(MaxLine)
	if err == nil {
		err = decode(line, &m)
	}
	return m, err
}

// decode reads a message of clove's own side, which was not examined: see Examine for
// others.
func decode(line []byte, m any) error {
	if err := json.Unmarshal(line, m); err != nil {
		return fmt.Errorf("cannot read a message: %w", err)
	}
	return nil
}

// longNoteBytes is from where on a notification is worth reading once instead of twice.
const longNoteBytes = 4 << 10

// longNote takes a long notification apart whose parameters are its last field, as
// cloved writes it. The reader of the parameters decodes them, and finds out whether they are JSON.
func longNote(line []byte) (m Message, is bool) {
	rest, begins := bytes.CutPrefix(line, []byte(`{"jsonrpc":"2.0","method":"`))
	if len(line) < longNoteBytes || !begins {
		return m, false
	}
	method, params, found := bytes.Cut(rest, []byte(`","params":`))
	if !found || bytes.ContainsAny(method, `\"`) || !bytes.HasSuffix(params, []byte("}")) {
		return m, false
	}
	return Message{Method: string(method), Params: params[:len(params)-1]}, true
}

// Send writes one message. Its raw fields go as they are: they must have no line end.
func (c *Conn) Send(m Message) error {
	c.send.Lock()
	defer c.send.Unlock()
	return c.write(m.parts(nil))
}

// Deliver writes messages in one line, as a batch where it is said to be one. It fails
// with os.ErrDeadlineExceeded when the other side does not read for sendTimeout: such a
// caller must not hold its answer for ever.
func (c *Conn) Deliver(batch bool, messages ...Message) error {
	var line net.Buffers
	for i, m := range messages {
		if i > 0 {
			line = append(line, []byte(","))
		}
		line = m.parts(line)
	}
	if batch {
		line = append(append(net.Buffers{[]byte("[")}, line...), []byte("]"))
	}
	c.send.Lock()
	defer c.send.Unlock()
	if err := c.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return err
	}
	return c.write(line)
}

// write ends a line and writes it; c.send is held.
func (c *Conn) write(line net.Buffers) error {
	line = append(line, []byte("\n"))
	_, err := line.WriteTo(c.Conn)
	return err
}

// Line is the message as it is sent.
func (m Message) Line() []byte { return append(bytes.Join(m.parts(nil), nil), '\n') }

// parts appends the message's text to a line. A result may be megabytes long: the raw
// fields are not copied.
func (m Message) parts(line net.Buffers) net.Buffers {
	text := []byte(`{"jsonrpc":"` + Version + `"`)
	switch {
	case len(m.ID) > 0:
		text = append(append(text, `,"id":`...), m.ID...)
	case m.Method == "": // the answer to what has no id that can be known
		text = append(text, `,"id":null`...)
	}
	if m.Method != "" {
		method, _ := json.Marshal(m.Method) // a string: it cannot fail
		text = append(append(text, `,"method":`...), method...)
	}
	for _, field := range []struct {
		key   string
		value json.RawMessage
	}{{`,"params":`, m.Params}, {`,"result":`, m.Result}, {`,"error":`, m.Error}} {
		if len(field.value) > 0 {
			line, text = append(line, append(text, field.key...), field.value), nil
		}
	}
	return append(line, append(text, '}'))
}

// Notify sends what needs no answer.
func (c *Conn) Notify(method string, params any) error { return c.say(nil, method, params) }

// Request sends a request with id 1: there is one at a time, so the answer needs no search.
func (c *Conn) Request(method string, params any) error {
	return c.say(json.RawMessage("1"), method, params)
}

// say encodes the parameters and sends a message.
func (c *Conn) say(id json.RawMessage, method string, params any) error {
	text, err := json.Marshal(params)
	if err != nil {
		return err
	}
	return c.Send(Message{ID: id, Method: method, Params: text})
}

// response is a message whose result is read into where the caller wants it,
// once: a list may be megabytes long.
type response struct {
	Message
	Result any `json:"result"`
}

// Answer waits for the response to the request and gives every notification
// before it to note, which may be nil. An error object comes back through
// fault. When ctx ends, the connection is closed: that ends the request.
func (c *Conn) Answer(ctx context.Context, result any, note func(Message) error, fault func(json.RawMessage) error) error {
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	for {
		m := response{Result: result}
		line, err := c.Line(MaxLine)
		if err == nil {
			var long bool
			if m.Message, long = longNote(line); !long {
				err = decode(line, &m)
			}
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded) || IsGone(err):
			return ErrGone
		case err != nil:
			return err
		case m.Method != "":
			if note == nil {
				continue
			}
			if err := note(m.Message); err != nil {
				return err
			}
		case m.Error != nil:
			return fault(m.Error)
		default:
			return nil
		}
	}
}

// Respond answers the request id: with result, or with the error object.
func (c *Conn) Respond(id json.RawMessage, result any, fault any) error {
	m := Message{ID: id}
	var err error
	if fault != nil {
		m.Error, err = json.Marshal(fault)
	} else {
		m.Result, err = json.Marshal(result)
	}
	if err != nil {
		return err
	}
	return c.Deliver(false, m)
}

// CloseWrite ends what this side says; it can still receive. It does nothing on a
// connection without a half-close.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// sendTimeout bounds the wait for a peer that does not read. It is of one message: a slow
// reader of a long stream is not cut off.
const sendTimeout = 30 * time.Second
