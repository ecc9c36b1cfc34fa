package testhost

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Thread is the number of a thread of this process, and of no process, until the
// test ends.
func Thread(t testing.TB) int {
	t.Helper()
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	for {
		number := make(chan int)
		go func() {
			runtime.LockOSThread() // and not unlocked: the thread ends with the goroutine
			number <- unix.Gettid()
			<-ended
		}()
		// The first thread has the process's own: it is kept busy, and another taken.
		if thread := <-number; thread != os.Getpid() {
			return thread
		}
	}
}
