package daemon

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/models/config"
)

// A models.yaml that has changed is read at the next call. One with a mistake is logged once, and
// what was read before it stays in force.
func TestAChangedModelsFileIsReadAtTheNextCall(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "models.yaml")
	var log bytes.Buffer
	m := &inference{path: func() string { return path }, log: slog.New(slog.NewTextHandler(&log, nil))}
	now, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	m.seen = markOf(path)
	m.current.Store(now)
	if m.fresh() != now {
		t.Error("a file that is missing, as before, was read")
	}
	const valid = "aliases: {%s: echo}\n"
	for i, row := range []struct {
		text, has, logged string
	}{
		{strings.ReplaceAll(valid, "%s", "one"), "one", "was read"},
		{"aliases: [\n", "one", "has a mistake"},
		{"aliases: [\n", "one", ""}, // not read again
		{strings.ReplaceAll(valid, "%s", "two"), "two", "was read"},
	} {
		if before, _ := os.ReadFile(path); string(before) != row.text {
			// A new file: one that is written in place within a tick of the clock has the same times.
			if err := os.WriteFile(path+".new", []byte(row.text), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		}
		log.Reset()
		if _, err := m.fresh().Resolve(row.has, 0, nil); err != nil {
			t.Errorf("%d: %v", i, err)
		}
		if row.logged == "" && log.Len() > 0 || !strings.Contains(log.String(), row.logged) {
			t.Errorf("%d: %s", i, log.String())
		}
	}
}
