package logs

import (
	"errors"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"clove.run/clove/api"
)

// errEnough ends a read that will be resumed.
var errEnough = errors.New("enough")

// Readers of every kind run beside a writer that rotates often, is reopened, and whose disk
// fails now and then: each reader gets every line once, shown or as lost, and the right number
// of bytes.
func TestReadersBesideRotations(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "log")
	many := 20000
	if testing.Short() {
		many = 5000
	}
	ended := make(chan struct{})
	var all sync.WaitGroup
	for _, slow := range []int{0, 1, 50} {
		all.Go(func() { // a follower
			var h listener
			err := Read(t.Context(), dir, Choice{Tail: -1, Ended: ended}, func(line api.LogLine) error {
				for range slow {
					runtime.Gosched()
				}
				return h.hear(line)
			})
			if err != nil || h.told != upTo(int64(many)) {
				t.Errorf("a follower: %+v, %v", h, err)
			}
		})
		all.Go(func() { // a reader that reads some lines, stops, and resumes
			var h listener
			for last := false; !last; {
				select {
				case <-ended:
					last = true
				default:
				}
				offset, rest := h.told.bytes, 10+100*slow
				err := Read(t.Context(), dir, Choice{Tail: -1, After: h.told.lines, Offset: &offset}, func(line api.LogLine) error {
					if rest--; rest < 0 && !last {
						return errEnough
					}
					return h.hear(line)
				})
				if err != nil && !errors.Is(err, errEnough) {
					t.Errorf("a resumer: %v", err)
					return
				}
			}
			if h.told != upTo(int64(many)) {
				t.Errorf("a resumer: %+v", h)
			}
		})
	}
	write(t, dir, many)
	close(ended)
	all.Wait()
}

// write writes the log, with rotations, reopenings and disk failures.
func write(t *testing.T, dir string, many int) {
	l, err := Open(dir, 8<<10)
	must(t, err)
	for n := 1; n <= many; n += 100 {
		switch {
		case n%1700 == 1:
			must(t, l.Close())
			l, err = Open(dir, 8<<10)
			must(t, err)
		case n%1300 == 1:
			repair := full(t, l)
			said(l, n, n+49)
			repair()
			said(l, n+50, n+99)
			continue
		}
		said(l, n, n+99)
	}
	must(t, l.Close())
}
