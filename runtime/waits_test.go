package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"clove.run/clove/agent"
)

// A listener is notified of a record that cannot be written, and only then. A removed
// directory is made again, so the test puts a file in its way.
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
		if err := l.leave(agent.Record{ExitCode: 1}, errors.New("disk full")); err == nil || heard != want {
			t.Errorf("%s: heard %d times, %v", path, heard, err)
		}
	}
}
