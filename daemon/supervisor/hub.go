package supervisor

import (
	"bytes"
	"context"
	"sync"

	"clove.run/clove/api"
)

// hub gives what the agent writes to every attached session. It never waits for one of
// them: the agent would wait, too, and its log.
type hub struct {
	host      *host      // of a foreground run; else nil
	mu        sync.Mutex // guards the following
	listeners map[*listener]bool
	closed    bool
}

// queued bounds what waits for one slow reader, in pieces of at most pipeRead.
const (
	queued   = 64
	pipeRead = 32 << 10
)

// listener is one attached session.
type listener struct {
	pieces chan api.SessionOutput // closed with the last output
	lost   int64                  // bytes since the last piece; guarded by the hub
}

func newHub() *hub { return &hub{listeners: map[*listener]bool{}} }

// join adds a listener; one that joins a closed hub gets nothing.
func (h *hub) join() *listener {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := &listener{pieces: make(chan api.SessionOutput, queued)}
	if h.closed {
		close(l.pieces)
		return l
	}
	h.listeners[l] = true
	return l
}

// leave ends a listener's output, and with it the loop that relays it. A hub that has
// closed did so already.
func (h *hub) leave(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listeners[l] {
		delete(h.listeners, l)
		close(l.pieces)
	}
}

// say copies the piece once for all: the buffer is its writer's.
func (h *hub) say(stream string, data []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.listeners) == 0 {
		return
	}
	own := append([]byte{}, data...)
	for l := range h.listeners {
		select {
		case l.pieces <- api.SessionOutput{Stream: stream, Data: own, Lost: l.lost}:
			l.lost = 0
		// The piece is dropped; the next one that fits says how many bytes are missing
		// before it.
		default:
			l.lost += int64(len(data))
		}
	}
}

// asked tells every attached session of a question that waits for people.
func (h *hub) asked(ctx context.Context, a api.Approval) {
	if h.host != nil {
		h.host.asked(ctx, a)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.listeners {
		select {
		case l.pieces <- api.SessionOutput{Asked: &a}:
		default: // clove approvals has it
		}
	}
}

// close ends every listener's output.
func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for l := range h.listeners {
		close(l.pieces)
	}
	clear(h.listeners)
}

// hubWriter is one stream's way into the hub.
type hubWriter struct {
	hub    *hub
	stream string
}

// Write fails with EPIPE where a foreground run's own reader of the stream has gone.
func (w hubWriter) Write(data []byte) (int, error) {
	w.hub.say(w.stream, data)
	if w.hub.host != nil {
		if err := w.hub.host.say(api.SessionOutput{Stream: w.stream, Data: bytes.Clone(data)}); err != nil {
			return 0, err
		}
	}
	return len(data), nil
}
