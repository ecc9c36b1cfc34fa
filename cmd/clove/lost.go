package main

import (
	"errors"
	"io"
	"sync"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// losses remembers the first output that could not be written, such as to a full disk. A reader
// that has gone (EPIPE) wants no more, so that is none.
type losses struct {
	mu    sync.Mutex // guards the following
	first error
}

func (l *losses) note(err error) {
	if l == nil || err == nil || errors.Is(err, unix.EPIPE) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == nil {
		l.first = err
	}
}

func (l *losses) any() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first
}

// noting notes a failed write and returns its error, too.
func (l *losses) noting(to io.Writer) io.Writer { return notingWriter{l, to} }

type notingWriter struct {
	losses *losses
	to     io.Writer
}

func (w notingWriter) Write(data []byte) (int, error) {
	n, err := w.to.Write(data)
	w.losses.note(err)
	return n, err
}

// withLosses is the exit status of a command that went on without some of its output, whose own
// status is kept if it is not 0. For programs, a lost output must not look like a whole one.
func (s *screen) withLosses(status int) int {
	if s.lost.any() != nil && status == 0 {
		return exitFailed
	}
	return status
}

// reportLosses says in one line what is missing.
func (s *screen) reportLosses() {
	if err := s.lost.any(); err != nil {
		s.report(&agent.Error{Kind: agent.KindInternal, Message: "output was lost", Err: err})
	}
}
