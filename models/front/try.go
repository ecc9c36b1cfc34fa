package front

import (
	"context"
	"io"
	"net/http"
	"os"

	"clove.run/clove/models/format"
	"clove.run/clove/models/link"
)

// try is one target's answer to a call.
type try struct {
	stream *os.File
	gone   func() bool // ends the watch of the client
	reader *link.Reader
	head   link.Head
	err    error    // there is no head
	held   [][]byte // what hold has read
	end    error    // how what was held ends; nil: nothing was held
	renew  string   // as Go's
}

// begin sends a request to the target that control names, and reads the head of its answer.
func begin(ctx context.Context, request *format.Request, a fromControl) *try {
	t := &try{stream: a.stream, reader: link.NewReader(a.stream), renew: a.message.Go.Renew}
	// A client that goes away ends the call: clove-upstream sees the stream close.
	t.gone = context.AfterFunc(ctx, func() { a.stream.Close() })
	request.Granted = a.message.Go.Granted
	body, err := request.Body(a.message.Go.Model, a.message.Go.Out)
	if err == nil {
		err = link.SendBody(a.stream, body)
	}
	if err == nil {
		t.head, err = t.reader.Head()
	}
	t.err = err
	return t
}

// failed reports whether another target may serve the call.
func (t *try) failed() bool { return t.err != nil || link.Overloaded(t.head.Status) }

// maxHeld bounds what is kept of a target's failure while others are tried, in bytes.
const maxHeld = 64 << 10

// hold reads the answer, so that control learns how the target's call ended.
func (t *try) hold() {
	defer t.close()
	if t.err != nil {
		return
	}
	for size := 0; t.end == nil; {
		var part []byte
		if part, t.end = t.reader.Next(); size+len(part) > maxHeld {
			t.end = io.EOF // an error's text that is longer is cut
			return
		}
		t.held, size = append(t.held, part), size+len(part)
	}
}

// next returns more of the answer, as link.Reader does.
func (t *try) next() ([]byte, error) {
	switch {
	case len(t.held) > 0:
		part := t.held[0]
		t.held = t.held[1:]
		return part, nil
	case t.end != nil:
		return nil, t.end
	}
	return t.reader.Next()
}

func (t *try) close() {
	t.gone()
	t.stream.Close()
}

// pass copies the answer to the client.
func (t *try) pass(w http.ResponseWriter, request *format.Request) {
	defer t.close()
	if t.err != nil {
		refuse(w, request.Format, failed(t.err))
		return
	}
	if t.head.Status == http.StatusUnauthorized && t.renew != "" {
		t.hold() // to its end: else the call would count as one whose client went
		fail(w, request.Format, format.Refusal{Cause: format.TokenRefused, Message: "the provider does not accept the token of its subscription", Hint: t.renew}, 0)
		return
	}
	w.Header().Set("Content-Type", t.head.Type)
	if t.head.After != "" {
		w.Header().Set("Retry-After", t.head.After)
	}
	if t.head.ID != "" {
		w.Header().Set("X-Request-Id", t.head.ID)
		w.Header().Set("Request-Id", t.head.ID)
	}
	w.WriteHeader(t.head.Status)
	out := outputOf(w, request, t.head)
	for {
		part, err := t.next()
		if err == io.EOF {
			out.end()
			return
		}
		if err != nil {
			out.abort(request, err)
			return
		}
		if out.write(part) != nil {
			return // the client is gone
		}
	}
}
