package mcp

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// answer writes to a client that may read slowly, or not at all: each part has its own deadline.
type answer struct {
	http.ResponseWriter
	control *http.ResponseController

	mu sync.Mutex // held while something is written
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
	_ = a.control.SetWriteDeadline(time.Now().Add(writeTime))
	return a.ResponseWriter.Write(part)
}

// FlushError is for http.ResponseController.
func (a *answer) FlushError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.control.Flush()
}

// keepAlive writes a comment into the stream of events now and then: clients of HTTP give up on a server that
// sends nothing, also no header, and one that has gone is noticed. An answer that is no stream has begun, and
// ended, long before the first.
func (a *answer) keepAlive(every time.Duration) (stop func()) {
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
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
	return func() {
		close(ended)
		<-done
	}
}
