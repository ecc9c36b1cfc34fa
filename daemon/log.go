package daemon

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/coreos/go-systemd/v22/journal"
)

// tailLines is how much of its own log cloved remembers.
const tailLines = 1000

// Tail remembers the last lines that were written to it, for clove debug: a host
// may have no journal.
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

// NewLog writes to the journal where stderr leads there, with a field for each
// attribute, and else lines of text to stderr; and lines of text to tail.
func NewLog(stderr, tail io.Writer, level slog.Leveler) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if journaled, err := journal.StderrIsJournalStream(); err == nil && journaled {
		return slog.New(slog.NewMultiHandler(&journalHandler{level: level, send: journal.Send}, slog.NewTextHandler(tail, options)))
	}
	return slog.New(slog.NewTextHandler(io.MultiWriter(stderr, tail), options))
}

// journalHandler makes an entry of the journal of each record. Groups are not
// used in cloved, so their names would only be noise.
type journalHandler struct {
	level  slog.Leveler
	fields []slog.Attr
	send   func(message string, priority journal.Priority, fields map[string]string) error
}

// Enabled, Handle, WithAttrs and WithGroup are those of slog.Handler.
func (h *journalHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= h.level.Level()
}

// Handle repeats the attributes in the message: that is what journalctl shows. The fields
// are for its filters (journalctl CLOVE_RUN=web).
func (h *journalHandler) Handle(_ context.Context, record slog.Record) error {
	text := record.Message
	fields := map[string]string{}
	note := func(a slog.Attr) bool {
		value := a.Value.Resolve().String()
		text += fmt.Sprintf(" %s=%s", a.Key, plain(value))
		fields[fieldName(a.Key)] = value
		return true
	}
	for _, a := range h.fields {
		note(a)
	}
	record.Attrs(note)
	return h.send(text, priority(record.Level), fields)
}

// plain quotes what would be mistaken for more than one value.
func plain(value string) string {
	if value == "" || strings.ContainsAny(value, " \t\n\"=") {
		return fmt.Sprintf("%q", value)
	}
	return value
}

// WithAttrs copies the fields, because handlers that were made of one another share none.
func (h *journalHandler) WithAttrs(fields []slog.Attr) slog.Handler {
	return &journalHandler{level: h.level, send: h.send, fields: append(h.fields[:len(h.fields):len(h.fields)], fields...)}
}

// WithGroup changes nothing: see journalHandler.
func (h *journalHandler) WithGroup(string) slog.Handler { return h }

// fieldName is CLOVE_ and the key in what systemd.journal-fields(7) allows.
func fieldName(key string) string {
	return "CLOVE_" + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, key)
}

// priority is the syslog priority of a level.
func priority(level slog.Level) journal.Priority {
	switch {
	case level >= slog.LevelError:
		return journal.PriErr
	case level >= slog.LevelWarn:
		return journal.PriWarning
	case level >= slog.LevelInfo:
		return journal.PriInfo
	}
	return journal.PriDebug
}
