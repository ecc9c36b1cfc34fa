package link

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// The kinds of frames.
const (
	frameAnswer = 'A'
	frameData   = 'D'
	frameEnd    = 'E'
)

const (
	headBytes = 5 // kind and length
	// dataMost bounds a part of a body, in bytes, so that one with its head fits into a pipe.
	dataMost  = 32 << 10
	valueMost = 96 << 10 // bytes of an Answer or an End
)

// Writer writes a body: data and an End; before them an Answer, if it is one's. Each call is one write.
type Writer struct {
	mu sync.Mutex // held while a frame is written
	w  io.Writer
	b  []byte
}

// NewWriter writes to a pipe.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Answer begins an answer.
func (w *Writer) Answer(a Answer) error { return w.value(frameAnswer, a) }

// Write adds data. It is an io.Writer.
func (w *Writer) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		part := p[:min(len(p), dataMost)]
		if err := w.frame(frameData, part); err != nil {
			return n, err
		}
		n += len(part)
		p = p[len(part):]
	}
	return n, nil
}

// End ends the body.
func (w *Writer) End(e End) error { return w.value(frameEnd, e) }

func (w *Writer) value(kind byte, v any) error {
	text, err := json.Marshal(v)
	if err == nil && len(text) > valueMost {
		err = errors.New("a head is too long")
	}
	if err != nil {
		return err
	}
	return w.frame(kind, text)
}

func (w *Writer) frame(kind byte, p []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b = append(binary.BigEndian.AppendUint32(append(w.b[:0], kind), uint32(len(p))), p...)
	_, err := w.w.Write(w.b)
	return err
}

// ErrBroken says that a body ended without an End.
var ErrBroken = errors.New("the body was broken off")

// Reader reads a body. It is an io.Reader of its data, which returns io.EOF behind an End.
type Reader struct {
	r    io.Reader
	left int // bytes of the data that has begun
	end  *End
}

// NewReader reads from a pipe.
func NewReader(r io.Reader) *Reader { return &Reader{r: bufio.NewReaderSize(r, 2*dataMost)} }

// Answer reads the beginning of an answer.
func (r *Reader) Answer() (a Answer, err error) {
	kind, n, err := r.head()
	if err == nil && kind != frameAnswer {
		err = fmt.Errorf("a frame %q where an answer begins", kind)
	}
	if err != nil {
		return a, err
	}
	return a, r.value(n, &a)
}

// Read is as io.Reader's.
func (r *Reader) Read(p []byte) (int, error) {
	for r.left == 0 {
		if r.end != nil {
			return 0, io.EOF
		}
		kind, n, err := r.head()
		switch {
		case err != nil:
			return 0, err
		case kind == frameEnd:
			r.end = &End{}
			if err := r.value(n, r.end); err != nil {
				return 0, err
			}
		case kind == frameData && n <= dataMost:
			r.left = n
		default:
			return 0, fmt.Errorf("a frame %q of %d bytes in a body", kind, n)
		}
	}
	n, err := r.r.Read(p[:min(len(p), r.left)])
	r.left -= n
	if err == io.EOF {
		err = ErrBroken
	}
	return n, err
}

// Trailer is what came with the End.
func (r *Reader) Trailer() map[string][]string {
	if r.end == nil {
		return nil
	}
	return r.end.Trailer
}

func (r *Reader) head() (kind byte, n int, err error) {
	var head [headBytes]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		if err == io.EOF {
			err = ErrBroken
		}
		return 0, 0, err
	}
	return head[0], int(binary.BigEndian.Uint32(head[1:])), nil
}

func (r *Reader) value(n int, v any) error {
	if n > valueMost {
		return fmt.Errorf("a head of %d bytes", n)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r.r, text); err != nil {
		return ErrBroken
	}
	return json.Unmarshal(text, v)
}
