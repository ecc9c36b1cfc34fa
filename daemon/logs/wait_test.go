package logs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A follower waits for a run that has not begun without making its directory, which would stay
// after the run.
func TestFollowersMakeNothing(t *testing.T) {
	t.Parallel()
	for name, begins := range map[string]bool{"a run that never begins": false, "a run that begins": true} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "logs", "run")
			ended, done := make(chan struct{}), make(chan error, 1)
			var h listener
			go func() { done <- Read(t.Context(), dir, Choice{Tail: -1, Ended: ended}, h.hear) }()
			lines := int64(0)
			if begins {
				lines = 10
				said(open(t, dir, 64<<10), 1, 10)
			}
			close(ended)
			must(t, <-done)
			if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) == begins {
				t.Errorf("%v", err)
			}
			if h.told != upTo(lines) {
				t.Errorf("%+v", h)
			}
		})
	}
}

// A follower that wants the last lines of a run that has not begun gets all lines: there are
// no older ones.
func TestNothingIsOldBeforeTheBeginning(t *testing.T) {
	t.Parallel()
	for name, begun := range map[string]bool{"not begun": false, "begun": true} {
		dir := filepath.Join(t.TempDir(), "run")
		if begun {
			open(t, dir, 64<<10)
		}
		ended := make(chan struct{})
		close(ended)
		r := &reader{dir: dir, choice: Choice{Tail: 3, Ended: ended}}
		watcher, err := r.watch(t.Context())
		must(t, err)
		if watcher != nil {
			must(t, watcher.Close())
		}
		if (watcher != nil) != begun || r.choice.Tail != map[bool]int{true: 3, false: -1}[begun] {
			t.Errorf("%s: watched %v, tail %d", name, watcher != nil, r.choice.Tail)
		}
	}
}
