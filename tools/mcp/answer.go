package mcp

import (
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// answer writes to a client that may read slowly, or not at all: each part has its own deadline.
type answer struct {
	http.ResponseWriter
	control *http.ResponseController
	most    time.Duration // of writing a part

	mu    sync.Mutex // guards the following, and is held while something is written
	ended bool
	timer *time.Timer // of the next comment
	quiet bool        // there are no more
}

func newAnswer(w http.ResponseWriter, most time.Duration) *answer {
	return &answer{ResponseWriter: w, control: http.NewResponseController(w), most: most}
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) WriteHeader(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(part []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return 0, net.ErrClosed
	}
	_ = a.control.SetWriteDeadline(time.Now().Add(a.most))
	return a.ResponseWriter.Write(part)
}

// FlushError is for http.ResponseController.
func (a *answer) FlushError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return net.ErrClosed
	}
	return a.control.Flush()
}

// end has nothing more written, as the request is over.
func (a *answer) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
}

// keepAlive writes a comment into the stream of events now and then: clients of HTTP give up on a server that
// sends nothing, also no header, and one that has gone is noticed. It is for a request whose handling has begun:
// the headers are set then.
func (a *answer) keepAlive(every time.Duration) (stop func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.quiet = false
	a.timer = time.AfterFunc(every, func() {
		if _, err := io.WriteString(a, ": it goes on\n\n"); err != nil || a.FlushError() != nil {
			return
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if !a.quiet {
			a.timer.Reset(every)
		}
	})
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.quiet = true
		a.timer.Stop()
	}
}
