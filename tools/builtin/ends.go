package builtin

import (
	"fmt"
	"strings"
)

// Ends keeps the first and the last half of Most bytes of what is written.
type Ends struct {
	Most       int
	head, tail []byte
	all        int
}

// Write never fails.
func (e *Ends) Write(p []byte) (int, error) {
	n, half := len(p), e.Most/2
	e.all += n
	if free := half - len(e.head); free > 0 {
		take := min(free, len(p))
		e.head, p = append(e.head, p[:take]...), p[take:]
	}
	// Twice as much is held, so that few writes move anything.
	if len(p) > half {
		p = p[len(p)-half:]
	}
	if len(e.tail)+len(p) > 2*half {
		e.tail = append(e.tail[:0], e.tail[max(0, len(e.tail)-half):]...)
	}
	e.tail = append(e.tail, p...)
	return n, nil
}

// shrink keeps less of what was written.
func (e *Ends) shrink(most int) {
	e.tail = e.tail[max(0, len(e.tail)-e.Most/2):] // what Text has of it
	e.head, e.Most = e.head[:min(len(e.head), most/2)], most
}

// Left is how many bytes are left out.
func (e *Ends) Left() int {
	return max(0, e.all-len(e.head)-min(len(e.tail), e.Most/2))
}

// Text is what was kept, in UTF-8, with a line in the middle on what is left out.
func (e *Ends) Text() string {
	tail := e.tail[max(0, len(e.tail)-e.Most/2):]
	text := string(e.head)
	if left := e.Left(); left > 0 {
		text += fmt.Sprintf("\n[%d bytes left out]\n", left)
	}
	return strings.ToValidUTF8(text+string(tail), "\uFFFD")
}

// head keeps the beginning of what is written, and counts the rest.
type head struct {
	most int
	text []byte
	left int
}

func (h *head) Write(p []byte) (int, error) {
	take := max(0, min(len(p), h.most-len(h.text)))
	h.text = append(h.text, p[:take]...)
	h.left += len(p) - take
	return len(p), nil
}
