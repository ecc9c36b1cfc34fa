package container

import (
	"os/signal"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The process may end as soon as it is made, before the other signals are caught.
func TestAnEndIsHeldFromTheBeginning(t *testing.T) {
	if newWatcher(Start{Detach: true}) != nil {
		t.Error("a program stays with a detached process")
	}
	w := newWatcher(Start{})
	t.Cleanup(func() { signal.Stop(w.signals) })
	if err := unix.Kill(unix.Getpid(), unix.SIGCHLD); err != nil {
		t.Fatal(err)
	}
	for late := time.After(30 * time.Second); ; {
		select {
		case s := <-w.signals:
			if s == unix.SIGCHLD {
				return
			}
		case <-late:
			t.Fatal("the signal was not held")
		}
	}
}
