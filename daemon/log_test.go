package daemon

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"maps"
	"strings"
	"testing"

	"github.com/coreos/go-systemd/v22/journal"
)

type entry struct {
	message  string
	priority journal.Priority
	fields   map[string]string
}

// Every attribute is a field of its own, and is part of the text that journalctl shows.
func TestJournalHandler(t *testing.T) {
	t.Parallel()
	var sent []entry
	var least slog.LevelVar
	log := slog.New(&journalHandler{level: &least, send: func(m string, p journal.Priority, f map[string]string) error {
		sent = append(sent, entry{m, p, f})
		return nil
	}})
	log.With("run", "one").Info("started", "exit-code", 3, "error", errors.New("no \"space\" left"))
	log.Debug("nothing")
	least.Set(slog.LevelDebug)
	log.Debug("seen")
	log.Warn("w", "empty", "")
	log.Error("e")
	want := []entry{
		{`started run=one exit-code=3 error="no \"space\" left"`, journal.PriInfo,
			map[string]string{"CLOVE_RUN": "one", "CLOVE_EXIT_CODE": "3", "CLOVE_ERROR": `no "space" left`}},
		{"seen", journal.PriDebug, nil},
		{`w empty=""`, journal.PriWarning, map[string]string{"CLOVE_EMPTY": ""}},
		{"e", journal.PriErr, nil},
	}
	if len(sent) != len(want) {
		t.Fatalf("%d entries: %+v", len(sent), sent)
	}
	for i, w := range want {
		if got := sent[i]; got.message != w.message || got.priority != w.priority || !maps.Equal(got.fields, w.fields) {
			t.Errorf("got %+v, want %+v", got, w)
		}
	}
}

// Without the journal the log is lines of text.
func TestLogWithoutJournal(t *testing.T) {
	t.Setenv("JOURNAL_STREAM", "1:1")
	var out bytes.Buffer
	NewLog(&out, io.Discard, slog.LevelInfo).Info("ready", "socket", "/s")
	if !strings.Contains(out.String(), "msg=ready socket=/s") {
		t.Errorf("%q", out.String())
	}
}
