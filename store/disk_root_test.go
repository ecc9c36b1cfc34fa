//go:build root

package store

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// small mounts a file system of size bytes for the test.
func small(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	must(t, unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=700,size="+size))
	t.Cleanup(func() { must(t, unix.Unmount(dir, 0)) })
	return dir
}

// beginUntilError begins up to 200 runs of some size, and returns those that were stored.
func beginUntilError(s *Store) (stored []agent.Run, err error) {
	for range 200 {
		run := newRun("")
		run.Spec.Env = []string{"FILL=" + strings.Repeat("x", 2000)}
		if run, err = s.Begin(run); err != nil {
			return stored, err
		}
		stored = append(stored, run)
	}
	return stored, nil
}

// If the disk becomes full in the middle of a commit, the transaction fails with a reason,
// earlier ones stay, and the store works again when there is space.
func TestDiskFullDuringCommit(t *testing.T) {
	if _, err := beginUntilError(openNew(t)); err != nil { // the control: with space it works
		t.Fatal(err)
	}
	dir := small(t, "256k")
	path := filepath.Join(dir, "state", "clove.db")
	ballast := filepath.Join(dir, "ballast")
	must(t, os.WriteFile(ballast, make([]byte, 64<<10), 0o600))
	s := open(t, path)
	stored, err := beginUntilError(s)
	known := wantKind(t, err, agent.KindInternal)
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(known.Message, "no space left") || known.Hint == "" {
		t.Errorf("got %v (%s)", err, known.Hint)
	}
	if len(stored) == 0 {
		t.Fatal("nothing was stored before the disk was full")
	}
	wantExactly(t, s, stored)
	must(t, s.Close())
	s = open(t, path) // also by another process
	wantExactly(t, s, stored)

	must(t, os.Remove(ballast))
	more, err := beginUntilError(s)
	if len(more) == 0 {
		t.Errorf("with space again: %v", err)
	}
	wantExactly(t, s, append(stored, more...))
	must(t, s.Close())
}

func wantExactly(t *testing.T, s *Store, want []agent.Run) {
	t.Helper()
	all, err := s.List()
	must(t, err)
	if len(all) != len(want) {
		t.Errorf("%d runs are stored, want %d", len(all), len(want))
	}
	for _, run := range want {
		wantStored(t, s, run)
	}
	problems, err := s.Check()
	must(t, err)
	if problems != nil {
		t.Error("check:", problems)
	}
}

// If the disk is full from the start, no incomplete file is left, and the same path works once
// there is space.
func TestDiskFullAtCreation(t *testing.T) {
	dir := small(t, "64k")
	ballast, path := filepath.Join(dir, "ballast"), filepath.Join(dir, "clove.db")
	refused := 0
	for free := 0; free <= 48<<10; free += 4 << 10 {
		must(t, os.WriteFile(ballast, make([]byte, 64<<10-free), 0o600))
		s, err := Open(path, patience)
		if err == nil {
			must(t, s.Close())
			must(t, os.Remove(path))
		} else if wantKind(t, err, agent.KindInternal); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%d bytes free: %v", free, err)
		} else if free == 48<<10 {
			t.Error("the control: with space it must work")
		}
		for _, name := range []string{path, path + ".new"} {
			if _, err := os.Lstat(name); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%d bytes free: %s is left (%v)", free, name, err)
			}
		}
		must(t, os.Remove(ballast))
		if err != nil {
			refused++
		}
	}
	if refused < 3 {
		t.Errorf("the disk was too full %d times: the test is not one", refused)
	}
	must(t, open(t, path).Close())
}

// A read-only file system is reported as such.
func TestReadOnlyFileSystem(t *testing.T) {
	dir := small(t, "256k")
	path := filepath.Join(dir, "clove.db")
	must(t, open(t, path).Close())
	must(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	_, err := Open(path, patience)
	if known := wantKind(t, err, agent.KindInternal); !strings.Contains(known.Message, "read-only file system") {
		t.Errorf("got %v", err)
	}
}

// A caller who is not root gets an error that says so. The file system sees another user on
// this thread (setfsuid(2)), which also removes root's capabilities for files.
func TestOpenWithoutPrivilege(t *testing.T) {
	path := tempFile(t)
	must(t, open(t, path).Close()) // the control: root may
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	must(t, unix.Setfsuid(65534))
	_, err := Open(path, patience)
	must(t, unix.Setfsuid(0))
	if known := wantKind(t, err, agent.KindPrivilege); !strings.Contains(known.Message, "may not be opened") {
		t.Errorf("got %v", err)
	}
}
