package testhost

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Thread returns the id of a thread of this process, which is not a process id, until the
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
		// The first thread's id is the pid: keep that goroutine busy and take another thread.
		if thread := <-number; thread != os.Getpid() {
			return thread
		}
	}
}
