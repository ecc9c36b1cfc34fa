package logs

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// If another process removes the directory while the log is opened, the opening still
// succeeds.
func TestALogIsOpenedWhileItIsRemoved(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "log")
	opened, removed := make(chan struct{}), make(chan struct{})
	var left atomic.Int32 // removals during the current opening, which tries a hundred times
	times := 0
	go func() {
		defer close(removed)
		for {
			select {
			case <-opened:
				return
			default:
				if left.Add(-1) < 0 {
					runtime.Gosched()
					continue
				}
				if err := os.RemoveAll(dir); err != nil && !errors.Is(err, unix.ENOTEMPTY) {
					t.Error(err)
					return
				}
				times++
			}
		}
	}()
	for range 500 {
		left.Store(90)
		l, err := Open(dir, 1<<20)
		if err != nil {
			t.Error(err)
			break
		}
		must(t, l.Close())
	}
	close(opened)
	<-removed
	if times < 10 {
		t.Errorf("control: it was removed %d times", times)
	}
}
