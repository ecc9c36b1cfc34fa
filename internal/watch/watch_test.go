package watch

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestChangesAreTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w, err := Dir(dir)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "file")
	for what, change := range map[string]func() error{
		"a new file": func() error { return os.WriteFile(path, nil, 0o600) },
		"a write":    func() error { return os.WriteFile(path, []byte("x"), 0o600) },
	} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-w.Changed:
		case <-time.After(time.Minute):
			t.Fatalf("%s is not told", what)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for range w.Changed { // ends: it was closed
	}
}

func TestNoDirectory(t *testing.T) {
	t.Parallel()
	if _, err := Dir(filepath.Join(t.TempDir(), "absent")); err == nil {
		t.Error("what is not there is watched")
	}
}
