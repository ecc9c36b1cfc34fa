package control

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"

	"clove.run/clove/agent"
	"clove.run/clove/models/link"
)

// Contents is the log of what the calls of a run say and get. Its methods may be called at the
// same time.
type Contents interface {
	Add(title string, request, answer []byte)
	Close() error
}

// Root's side passes contents on as bytes, and keeps this many of them.
const (
	maxContent = 1 << 20  // of a request, and of an answer
	maxHeld    = 64 << 20 // in memory, of all calls
)

// contents closes a run's log when the run has left and its last call is logged.
type contents struct {
	log  Contents
	room *heldBytes

	mu     sync.Mutex // guards the following
	copies int
	left   bool
	once   sync.Once // closes log
}

// openContents opens the log of a run that asks for one; nil: it does not. room is what all logs
// keep in memory.
func openContents(run agent.Run, open func(agent.ID) (Contents, error), room *heldBytes) (*contents, error) {
	if !run.Spec.Kernel.ModelLog {
		return nil, nil
	}
	if open == nil {
		return nil, fmt.Errorf("nothing here logs calls of models")
	}
	log, err := open(run.Spec.ID)
	if err != nil {
		return nil, fmt.Errorf("cannot log calls of models: %w", err)
	}
	return &contents{log: log, room: room}, nil
}

// enter reports whether a call may still be logged; the caller calls done then.
func (l *contents) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.left {
		l.copies++
	}
	return !l.left
}

func (l *contents) done() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.copies--
	l.close()
}

// leave closes the log behind its last call. That of a run which logs nothing is nil.
func (l *contents) leave() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = true
	l.close()
}

// close is called with l.mu held.
func (l *contents) close() {
	if l.left && l.copies == 0 {
		l.once.Do(func() { _ = l.log.Close() }) // what it could not write is counted in it
	}
}

// copied returns the descriptors of a call for clove-upstream: the stream, and where the run
// logs its calls, one to which it copies what is said. A call that could not be logged is not made.
// copies counts those that are not logged yet.
func (l *contents) copied(title string, far *os.File, copies func(more int)) ([]*os.File, error) {
	if l == nil {
		return []*os.File{far}, nil
	}
	own, theirs, err := stream()
	if err != nil {
		return nil, err
	}
	if !l.enter() {
		own.Close()
		theirs.Close()
		return nil, fmt.Errorf("the run has ended")
	}
	copies(1)
	go func() {
		defer copies(-1)
		defer l.done()
		defer own.Close()
		l.keep(title, own)
	}()
	return []*os.File{far, theirs}, nil
}

// keep logs a call of which clove-upstream sends a copy. It reads to the end, whatever it keeps:
// clove-upstream waits for it.
func (l *contents) keep(title string, from io.Reader) {
	size, err := link.ReceiveSize(from)
	if err != nil {
		return // the body broke off: nothing was sent
	}
	request, answer := content{room: l.room}, content{room: l.room}
	defer request.release()
	defer answer.release()
	_, _ = io.CopyN(&request, from, size) // what came is logged
	_, _ = io.Copy(&answer, from)
	l.log.Add(title+request.cut("request")+answer.cut("answer"), request.text.Bytes(), answer.text.Bytes())
}

// content keeps the beginning of what is written to it.
type content struct {
	room *heldBytes
	text bytes.Buffer
	all  int64 // bytes that came
	full bool  // nothing more is kept
}

// Write never fails.
func (t *content) Write(p []byte) (int, error) {
	t.all += int64(len(p))
	part := p[:min(len(p), maxContent-t.text.Len())]
	if !t.full && t.room.take(int64(len(part))) {
		t.text.Write(part)
	}
	t.full = int64(t.text.Len()) < t.all
	return len(p), nil
}

// release gives the room back.
func (t *content) release() { t.room.give(int64(t.text.Len())) }

// cut says how much is missing.
func (t *content) cut(what string) string {
	if !t.full {
		return ""
	}
	return fmt.Sprintf(", %s cut after %d of %d bytes", what, t.text.Len(), t.all)
}

// heldBytes bounds the bytes of contents that are held.
type heldBytes struct {
	mu   sync.Mutex // guards used
	used int64
}

func (r *heldBytes) take(n int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.used+n > maxHeld {
		return false
	}
	r.used += n
	return true
}

func (r *heldBytes) give(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used -= n
}
