package store

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

func TestBusyNamesTheHolder(t *testing.T) {
	t.Parallel()
	path := tempFile(t)
	holder := startChild(t, "hold", path)
	holder.line(t)
	for _, timeout := range []time.Duration{0, 50 * time.Millisecond} {
		_, err := Open(path, timeout)
		known := wantKind(t, err, agent.KindBusy)
		for _, part := range []string{path, fmt.Sprintf("process %d (%s", holder.Process.Pid, commandOf("self")), timeout.String()} {
			if !strings.Contains(known.Message, part) {
				t.Errorf("%q does not say %q", known.Message, part)
			}
		}
		if !strings.Contains(known.Hint, fmt.Sprintf("kill %d", holder.Process.Pid)) {
			t.Errorf("the hint is %q", known.Hint)
		}
	}
	must(t, holder.in.Close()) // the control: it closes the file, which is free then
	must(t, open(t, path).Close())
}

// A process that waits is not reported as the holder, although it has the same file open.
func TestHolderIsNotAWaiter(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	if who, found := holderOf(path); found {
		t.Errorf("%v holds a file that does not exist", who)
	}
	waiting, err := os.Create(path)
	must(t, err)
	defer waiting.Close()
	namesake, err := acquire(filepath.Join(t.TempDir(), "lock"), time.Now())
	must(t, err)
	if who, found := holderOf(path); found {
		t.Errorf("%v holds a lock that no process took", who)
	}
	must(t, namesake.release())
	lock, err := acquire(path, time.Now())
	must(t, err)
	if who, found := holderOf(path); !found || who.pid != fmt.Sprint(os.Getpid()) {
		t.Errorf("got %v, %v", who, found)
	}
	must(t, lock.release())
}

// Another program, such as bbolt's own tool, takes only bbolt's lock.
func TestBusyByAnotherProgram(t *testing.T) {
	t.Parallel()
	path := tempFile(t)
	must(t, open(t, path).Close())
	db, err := bbolt.Open(path, 0o600, nil)
	must(t, err)
	defer db.Close()
	_, err = Open(path, 60*time.Millisecond)
	if known := wantKind(t, err, agent.KindBusy); !strings.Contains(known.Message, fmt.Sprint("process ", os.Getpid())) {
		t.Errorf("%q does not name this process", known.Message)
	}
}

func TestKilledHolderFreesTheFile(t *testing.T) {
	t.Parallel()
	path := tempFile(t)
	holder := startChild(t, "hold", path)
	holder.line(t)
	_, err := Open(path, 0)
	wantKind(t, err, agent.KindBusy)
	opened := make(chan error, 1)
	go func() {
		s, err := Open(path, patience)
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	must(t, holder.Process.Kill())
	must(t, <-opened)
}

// A caller that gave up waiting must not get the lock later.
func TestGivenUpWaitHoldsNothing(t *testing.T) {
	t.Parallel()
	path := tempFile(t)
	s := open(t, path)
	for range 5 {
		_, err := Open(path, time.Millisecond)
		wantKind(t, err, agent.KindBusy)
	}
	must(t, s.Close())
	must(t, open(t, path).Close())
}

// Close releases the lock even if a copy of the descriptor is still open, as in a child
// between fork and exec.
func TestCloseFreesTheLockDespiteACopy(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	lock, err := acquire(path, time.Now())
	must(t, err)
	duplicate, err := unix.Dup(int(lock.file.Fd()))
	must(t, err)
	defer unix.Close(duplicate)
	must(t, lock.release())
	again, err := acquire(path, time.Now())
	must(t, err)
	must(t, again.release())
}
