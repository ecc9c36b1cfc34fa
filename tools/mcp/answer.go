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

	mu    sync.Mutex // held while something is written
	ended bool
}

func newAnswer(w http.ResponseWriter) *answer {
	return &answer{ResponseWriter: w, control: http.NewResponseController(w)}
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
	_ = a.control.SetWriteDeadline(time.Now().Add(writeTime))
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
	ended := make(chan struct{})
	go func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
				if _, err := io.WriteString(a, ": it goes on\n\n"); err != nil || a.FlushError() != nil {
					return
				}
			}
		}
	}()
	return func() { close(ended) }
}
