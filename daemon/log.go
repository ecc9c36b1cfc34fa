package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/coreos/go-systemd/v22/journal"
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

// NewLog writes to the journal where stderr leads there, with a field for each
// attribute, and else lines of text to stderr.
func NewLog(stderr io.Writer, level slog.Leveler) *slog.Logger {
	if journaled, err := journal.StderrIsJournalStream(); err == nil && journaled {
		return slog.New(&journalHandler{level: level, send: journal.Send})
	}
	return slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
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

// Handle repeats the attributes in the message: that is what journalctl shows.
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

// plain quotes what would be mistaken for more than one word.
func plain(value string) string {
	if value == "" || strings.ContainsAny(value, " \t\n\"=") {
		return fmt.Sprintf("%q", value)
	}
	return value
}

func (h *journalHandler) WithAttrs(fields []slog.Attr) slog.Handler {
	return &journalHandler{level: h.level, send: h.send, fields: append(h.fields[:len(h.fields):len(h.fields)], fields...)}
}

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

// priority is syslog's word for a level.
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
