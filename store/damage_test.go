package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// soundFile returns the content of a store with enough runs for branch pages.
func soundFile(t *testing.T) []byte {
	t.Helper()
	path := tempFile(t)
	s := open(t, path)
	s.db.NoSync = true
	for i := range 60 {
		run := newRun("")
		run.Spec.Env = []string{"FILL=" + strings.Repeat("x", 300)}
		_, err := s.Begin(run)
		must(t, err)
		if i%2 == 0 {
			_, err = endRun(s, run.Spec)
			must(t, err)
		}
	}
	must(t, s.Close())
	data, err := os.ReadFile(path)
	must(t, err)
	return data
}

func TestOpenRefusesADamagedFile(t *testing.T) {
	t.Parallel()
	sound := soundFile(t)
	zeroed := append([]byte(nil), sound...)
	clear(zeroed[:2*os.Getpagesize()])
	meta, size := newestMeta(sound)
	used := binary.LittleEndian.Uint64(meta[metaPages:]) * size
	for name, data := range map[string][]byte{
		"empty":         {},
		"text":          []byte("this is no store"),
		"no meta pages": zeroed,
		"cut short":     sound[:3*size],
		"cut a byte":    sound[:used-1],
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "clove.db")
			must(t, os.WriteFile(path, data, 0o600))
			_, err := Open(path, patience)
			known := wantKind(t, err, agent.KindInternal)
			if !strings.Contains(known.Hint, "mv "+path) {
				t.Errorf("the hint names no remedy: %s", known.Hint)
			}
			must(t, os.Rename(path, path+".damaged")) // the remedy that the error names
			_, err = open(t, path).Begin(newRun(""))
			must(t, err)
		})
	}
}

// Every page is overwritten, one after the other. Whatever that does to bbolt, the process
// survives, errors say that the file is damaged, and Close releases the locks.
func TestNoDamagedPageIsFatal(t *testing.T) {
	t.Parallel()
	sound := soundFile(t)
	size := os.Getpagesize()
	fills := map[string]func(page []byte){
		"zeros":   func(page []byte) { clear(page) },
		"ones":    func(page []byte) { fill(page, 0xff) },
		"content": func(page []byte) { fill(page[16:], 0xff) }, // after a valid header
		"header":  func(page []byte) { fill(page[8:16], 0x7f) },
		"cycle":   func(page []byte) { copy(page, sound[2*size:3*size]) },
	}
	refused, tried, step := 0, 0, size
	if testing.Short() {
		step = 5 * size // each kind of damage begins at another page
	}
	from := 0
	for name, spoil := range fills {
		for at := from; at+size <= len(sound); at += step {
			tried++
			data := append([]byte(nil), sound...)
			spoil(data[at : at+size])
			path := filepath.Join(t.TempDir(), "clove.db")
			must(t, os.WriteFile(path, data, 0o600))
			if err := useAll(path); err != nil {
				refused++
				if agent.KindOf(err) == agent.KindBusy || !errors.As(err, new(*agent.Error)) {
					t.Errorf("page %d, %s: %v", at/size, name, err)
				}
			}
			s, err := Open(path, 0)
			if agent.KindOf(err) == agent.KindBusy {
				t.Fatalf("page %d, %s: the lock was not given back", at/size, name)
			}
			if err == nil {
				s.Close()
			}
		}
		if from += size; from == step {
			from = 0
		}
	}
	if refused == 0 {
		t.Error("no damage was noticed")
	}
	t.Logf("%d of %d damaged files were refused", refused, tried)
}

func fill(page []byte, value byte) {
	for i := range page {
		page[i] = value
	}
}

// useAll calls every operation of a Store and returns the first error.
func useAll(path string) error {
	s, err := Open(path, patience)
	if err != nil {
		return err
	}
	_, list := s.List()
	_, get := s.Get("abcd")
	if agent.KindOf(get) == agent.KindNotFound {
		get = nil
	}
	run, begin := s.Begin(newRun(""))
	var end error
	if begin == nil {
		_, end = endRun(s, run.Spec)
	}
	problems, check := s.Check()
	if len(problems) > 0 {
		check = firstOf(check, &agent.Error{Message: fmt.Sprint(problems)})
	}
	return firstOf(list, get, begin, end, check, s.Close())
}

// A broken Store refuses everything and can still be closed.
func TestABrokenStoreStaysClosed(t *testing.T) {
	t.Parallel()
	path := tempFile(t)
	s := open(t, path)
	err := s.update(func(*tables) error { panic("a page") })
	if !errors.Is(err, errDamaged) {
		t.Fatalf("got %v", err)
	}
	_, err = s.List()
	wantKind(t, err, agent.KindInternal)
	_, err = s.Begin(newRun(""))
	wantKind(t, err, agent.KindInternal)
	must(t, s.Close())
	must(t, open(t, path).Close())
}

// Access to a page that the file no longer has is a memory fault, not a panic: without the
// protection of this package it would end the process.
func TestAFaultIsAnError(t *testing.T) {
	t.Parallel()
	sound := soundFile(t)
	path := filepath.Join(t.TempDir(), "clove.db")
	must(t, os.WriteFile(path, sound, 0o600))
	s := open(t, path)
	must(t, os.Truncate(path, int64(2*os.Getpagesize())))
	_, err := s.List()
	if wantKind(t, err, agent.KindInternal); !errors.Is(err, errDamaged) {
		t.Errorf("got %v", err)
	}
	must(t, s.Close())
}
