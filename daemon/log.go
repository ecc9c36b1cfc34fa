package daemon

import (
	"bytes"
	"fmt"
	"log/slog"
	"sync"
)

// level reads a word of the configuration.
func level(word string) (slog.Level, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(word)); err != nil {
		return l, fmt.Errorf("log_level: %q is not debug, info, warn or error", word)
	}
	return l, nil
}

// Level is the configured level of cloved's own log.
func (c Config) Level() slog.Level {
	l, _ := level(c.LogLevel) // it was checked
	return l
}

// tailLines is how much of its own log cloved remembers.
const tailLines = 1000

// Tail remembers the last lines that were written to it: who reports a cloved
// that misbehaves may have no journal.
type Tail struct {
	mu    sync.Mutex // guards the following
	lines [][]byte
	next  int // where the next line goes, when it is full
}

// Write takes whole lines, as a log handler writes them.
func (t *Tail) Write(line []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) < tailLines {
		t.lines = append(t.lines, bytes.Clone(line))
		return len(line), nil
	}
	t.lines[t.next] = append(t.lines[t.next][:0], line...)
	t.next = (t.next + 1) % tailLines
	return len(line), nil
}

// String returns what is remembered, oldest first.
func (t *Tail) String() string {
	if t == nil {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.Join(append(t.lines[t.next:len(t.lines):len(t.lines)], t.lines[:t.next]...), nil))
}
