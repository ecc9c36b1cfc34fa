package creates

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A note counts as abandoned from the end of its create until it is removed.
func TestANoteIsAbandonedWithItsCreate(t *testing.T) {
	t.Parallel()
	register := filepath.Join(t.TempDir(), Name)
	abandoned := func(want int) {
		t.Helper()
		if found, err := Abandoned(register); err != nil || len(found) != want {
			t.Errorf("%d abandoned: %+v, %v", want, found, err)
		}
	}
	abandoned(0) // no directory yet
	made := Note{Directory: "/engine/one", Cgroup: []byte(`{"Name":"one"}`), Paths: map[string]string{"": "/sys/fs/cgroup/one"}}
	held, err := Begin(register, made)
	if err != nil {
		t.Fatal(err)
	}
	abandoned(0) // its create lives
	held.Close()
	abandoned(1)
	if n, err := Find(register, "/engine/one"); err != nil || n.Paths[""] != "/sys/fs/cgroup/one" || string(n.Cgroup) != `{"Name":"one"}` {
		t.Errorf("%+v, %v", n, err)
	}
	for range 2 { // again is no error
		if err := End(register, "/engine/one"); err != nil {
			t.Error(err)
		}
	}
	abandoned(0)
}

// A create that was killed while it wrote has made no cgroup.
func TestHalfANoteIsNone(t *testing.T) {
	t.Parallel()
	register := t.TempDir()
	if err := os.WriteFile(file(register, "/engine/one"), []byte(`{"directory":"/eng`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(register, "/engine/one"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if found, err := Abandoned(register); err != nil || len(found) > 0 {
		t.Errorf("%+v, %v", found, err)
	}
}
