package link

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

const (
	// MaxBody bounds a request's body, in bytes.
	MaxBody = 32 << 20
	// maxFrame bounds a part of an answer, in bytes.
	maxFrame = 1 << 20
)

// Head begins an answer.
type Head struct {
	Status int    `json:"status"`
	Type   string `json:"type"` // Content-Type
	After  string `json:"after,omitempty"`
	ID     string `json:"id,omitempty"` // the provider's id of the request
}

// End ends an answer that is whole, or says what is wrong with one that is not.
type End struct {
	Error string `json:"error,omitempty"`
}

// SendBody writes a request's body.
func SendBody(w io.Writer, body []byte) error {
	if len(body) > MaxBody {
		return fmt.Errorf("cannot send a body of %d bytes", len(body))
	}
	if _, err := w.Write(binary.BigEndian.AppendUint32(nil, uint32(len(body)))); err != nil {
		return err
	}
	_, err := w.Write(body)
	return err
}

// ReceiveBody reads a request's body, if there is room for so many bytes.
func ReceiveBody(r io.Reader, room func(bytes int64) bool) ([]byte, error) {
	n, err := ReceiveSize(r)
	if err == nil && !room(n) {
		err = noRoom(n)
	}
	if err != nil {
		return nil, err
	}
	body := make([]byte, n)
	_, err = io.ReadFull(r, body)
	return body, err
}

func noRoom(bytes int64) error { return fmt.Errorf("cannot receive a body of %d bytes", bytes) }

// ReceiveSize reads how many bytes of a body follow.
func ReceiveSize(r io.Reader) (int64, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return 0, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > MaxBody {
		return 0, noRoom(int64(n))
	}
	return int64(n), nil
}

// The kinds of frames of an answer.
const (
	frameHead = 'H'
	frameData = 'D'
	frameEnd  = 'E'
)

// Answer writes an answer: a Head, data, and an End.
type Answer struct{ W io.Writer }

// Head begins the answer.
func (a Answer) Head(h Head) error { return a.value(frameHead, h) }

// Write adds data. It is an io.Writer.
func (a Answer) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		part := p[:min(len(p), maxFrame)]
		if err := a.frame(frameData, part); err != nil {
			return n, err
		}
		n += len(part)
		p = p[len(part):]
	}
	return n, nil
}

// End ends the answer.
func (a Answer) End(e End) error { return a.value(frameEnd, e) }

func (a Answer) value(kind byte, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return a.frame(kind, text)
}

// frame is one write, so that a reader is woken once.
func (a Answer) frame(kind byte, p []byte) error {
	out := make([]byte, 0, 5+len(p))
	out = append(out, kind)
	out = binary.BigEndian.AppendUint32(out, uint32(len(p)))
	_, err := a.W.Write(append(out, p...))
	return err
}

// Reader reads an answer.
type Reader struct{ r *bufio.Reader }

// NewReader reads an answer from a stream.
func NewReader(r io.Reader) *Reader { return &Reader{bufio.NewReader(r)} }

// ErrBroken says that an answer ended without an End.
var ErrBroken = errors.New("the answer broke off")

// Head reads the begin of the answer. Where there is none, the error is what End says.
func (r *Reader) Head() (h Head, err error) {
	kind, text, err := r.frame()
	switch {
	case err != nil:
		return h, err
	case kind == frameHead:
		return h, json.Unmarshal(text, &h)
	case kind != frameEnd:
		return h, fmt.Errorf("the answer begins with %q", kind)
	}
	if err = ending(text); err == io.EOF {
		err = ErrBroken
	}
	return h, err
}

// Next returns more data; io.EOF at the end of a whole answer.
func (r *Reader) Next() ([]byte, error) {
	kind, text, err := r.frame()
	switch {
	case err != nil:
		return nil, err
	case kind == frameData:
		return text, nil
	case kind != frameEnd:
		return nil, fmt.Errorf("the answer has a part %q", kind)
	}
	return nil, ending(text)
}

// ending is the error that an End means; io.EOF for a whole answer.
func ending(text []byte) error {
	var e End
	if err := json.Unmarshal(text, &e); err != nil {
		return err
	}
	if e.Error != "" {
		return errors.New(e.Error)
	}
	return io.EOF
}

func (r *Reader) frame() (kind byte, p []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		return 0, nil, ErrBroken
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > maxFrame {
		return 0, nil, fmt.Errorf("a part of %d bytes", n)
	}
	p = make([]byte, n)
	if _, err := io.ReadFull(r.r, p); err != nil {
		return 0, nil, ErrBroken
	}
	return head[0], p, nil
}
