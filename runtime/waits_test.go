package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"clove.run/clove/agent"
)

// Whoever listens hears of a record that finds no place, and only of such a one: a
// directory that was removed is made anew, which a file in its way prevents.
func TestARecordThatFindsNoPlaceIsTold(t *testing.T) {
	t.Parallel()
	there := t.TempDir()
	file := filepath.Join(there, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{there: 0, filepath.Join(there, "removed"): 0, filepath.Join(file, "run"): 1} {
		lock, err := os.CreateTemp(there, "lock")
		if err != nil {
			t.Fatal(err)
		}
		heard := 0
		l := &launch{dir: &runDirectory{path: path, lock: lock}, streams: IO{Waits: func(r agent.Record) { heard += r.ExitCode }}}
		if err := l.leave(agent.Record{ExitCode: 1}, errors.New("no room")); err == nil || heard != want {
			t.Errorf("%s: heard %d times, %v", path, heard, err)
		}
	}
}
