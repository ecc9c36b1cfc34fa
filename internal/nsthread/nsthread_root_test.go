//go:build root

package nsthread

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMountsStayOnTheThread(t *testing.T) {
	dir := t.TempDir()
	thread, err := Start(unix.CLONE_NEWNS)
	if err != nil {
		t.Fatal(err)
	}
	defer thread.Close()
	inside := filepath.Join(dir, "inside")
	err = thread.Do(func() error {
		if err := unix.Mount("none", dir, "tmpfs", 0, ""); err != nil {
			return err
		}
		return os.WriteFile(inside, nil, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(inside); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the thread's mount shows outside: %v", err)
	}
	// Control: the thread itself sees it.
	if err := thread.Do(func() error { _, err := os.Stat(inside); return err }); err != nil {
		t.Errorf("the thread does not see its own mount: %v", err)
	}
}

func TestNetworkNamespaceDiffers(t *testing.T) {
	const path = "/proc/thread-self/ns/net"
	outside, err := os.Readlink(path)
	if err != nil {
		t.Fatal(err)
	}
	thread, err := Start(unix.CLONE_NEWNET)
	if err != nil {
		t.Fatal(err)
	}
	defer thread.Close()
	var inside string
	if err := thread.Do(func() (err error) { inside, err = os.Readlink(path); return err }); err != nil {
		t.Fatal(err)
	}
	if inside == outside {
		t.Errorf("the thread is still in %s", outside)
	}
	if again, _ := os.Readlink(path); again != outside {
		t.Errorf("the test's own thread moved to %s", again)
	}
}

func TestDoReturnsTheError(t *testing.T) {
	thread, err := Start(0)
	if err != nil {
		t.Fatal(err)
	}
	defer thread.Close()
	want := errors.New("no")
	if err := thread.Do(func() error { return want }); !errors.Is(err, want) {
		t.Errorf("got %v", err)
	}
}

func TestDoSurvivesTheEndOfItsGoroutine(t *testing.T) {
	thread, err := Start(0)
	if err != nil {
		t.Fatal(err)
	}
	defer thread.Close()
	if err := thread.Do(func() error { runtime.Goexit(); return nil }); !errors.Is(err, errEnded) {
		t.Errorf("got %v", err)
	}
	if err := thread.Do(func() error { return nil }); !errors.Is(err, errEnded) {
		t.Errorf("after the end: %v", err)
	}
}

// TestNeverTheFirstThread: the first thread cannot end alone, and /proc/self shows it.
func TestNeverTheFirstThread(t *testing.T) {
	for range 300 {
		thread, err := Start(unix.CLONE_NEWNET)
		if err != nil {
			t.Fatal(err)
		}
		first := false
		err = thread.Do(func() error { first = unix.Gettid() == unix.Getpid(); return nil })
		thread.Close()
		if err != nil || first {
			t.Fatalf("on the first thread: %v, %v", first, err)
		}
	}
}
