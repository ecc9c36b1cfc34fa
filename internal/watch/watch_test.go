package watch

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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
	for range w.Changed { // it ends when it is closed
	}
}

func TestNoDirectory(t *testing.T) {
	t.Parallel()
	if _, err := Dir(filepath.Join(t.TempDir(), "absent")); err == nil {
		t.Error("what is not there is watched")
	}
}

// await fails if no notification comes.
func await(t *testing.T, what string, w *Watcher) {
	t.Helper()
	select {
	case _, open := <-w.Changed:
		if !open {
			t.Errorf("%s: it was closed", what)
		}
	case <-time.After(time.Minute):
		t.Fatalf("%s: nothing is told", what)
	}
}

// TestASourceTellsEachOfItsOwn: two watchers of one directory and one of another share an
// inotify instance, and the end of one does not end another.
func TestASourceTellsEachOfItsOwn(t *testing.T) {
	t.Parallel()
	s, a, b := &Source{}, t.TempDir(), t.TempDir()
	var watchers []*Watcher
	for _, dir := range []string{a, a, b} {
		w, err := s.Dir(dir)
		if err != nil {
			t.Fatal(err)
		}
		watchers = append(watchers, w)
	}
	touch := func(dir string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	touch(b)
	await(t, "b", watchers[2])
	if len(watchers[0].Changed)+len(watchers[1].Changed) != 0 {
		t.Error("what happened in b is told of a")
	}
	touch(a)
	await(t, "the first of a", watchers[0])
	await(t, "the second of a", watchers[1])
	for range 2 { // the second call does nothing
		if err := watchers[0].Close(); err != nil {
			t.Error(err)
		}
	}
	if _, open := <-watchers[0].Changed; open {
		for range watchers[0].Changed { // earlier notifications
		}
	}
	for len(watchers[1].Changed) > 0 {
		<-watchers[1].Changed
	}
	touch(a)
	await(t, "the second of a, alone", watchers[1])
	if err := os.RemoveAll(b); err != nil {
		t.Fatal(err)
	}
	await(t, "b, which went", watchers[2])
	for _, w := range watchers[1:] {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(s.watched) != 0 {
		t.Errorf("it still watches %v", s.watched)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Dir(a); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a closed one watches: %v", err)
	}
}

// TestAFullQueueIsAboutAll: after an overflow of the queue, every watcher is notified.
func TestAFullQueueIsAboutAll(t *testing.T) {
	t.Parallel()
	s := &Source{}
	defer s.Close()
	w, err := s.Dir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	overflow := binary.NativeEndian.AppendUint32(nil, 1<<32-1) // inotify(7): the descriptor is -1
	overflow = binary.NativeEndian.AppendUint32(overflow, unix.IN_Q_OVERFLOW)
	s.wake(append(overflow, make([]byte, 8)...))
	await(t, "a full queue", w)
}
