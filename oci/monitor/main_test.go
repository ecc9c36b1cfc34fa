package monitor

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// role names what a copy of the test binary does instead of testing.
const role = "CLOVE_MONITOR_ROLE"

// init keeps the main goroutine on the process's first thread.
func init() {
	if os.Getenv(role) != "" {
		runtime.LockOSThread()
	}
}

// TestMain is also the main function of the monitors that the package starts from this binary.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Argument {
		os.Exit(Main(os.Args[2:]))
	}
	if name := os.Getenv(role); name != "" {
		os.Unsetenv(role)
		roles[name]()
		return
	}
	os.Exit(m.Run())
}

// endThread ends the calling goroutine's thread and no other one.
func endThread(code int) {
	_, _, _ = unix.Syscall(unix.SYS_EXIT, uintptr(code), 0, 0)
}

// onThread runs f on a new thread, which is not the first one, and returns when f returned or
// the thread has ended.
func onThread(f func()) {
	number := make(chan int)
	go func() {
		runtime.LockOSThread()
		number <- unix.Gettid()
		f()
	}()
	awaitThread(<-number)
}

// awaitThread returns when a thread of this process has ended; the first one stays as a
// zombie.
func awaitThread(number int) {
	for {
		text, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/stat", number))
		if err != nil {
			return
		}
		if strings.Contains(string(text), ") Z ") {
			return
		}
		runtime.Gosched()
	}
}

// endAfterFirst ends the first thread with 0, and then the process with code.
func endAfterFirst(code int) {
	first := unix.Gettid()
	go func() {
		runtime.LockOSThread()
		awaitThread(first)
		os.Exit(code)
	}()
	endThread(0)
}

// roles are the ways in which a process with several threads can end.
var roles = map[string]func(){
	"a thread before":         func() { onThread(func() { endThread(0) }); os.Exit(7) },
	"the first before":        func() { endAfterFirst(7) },
	"the first before, alike": func() { endAfterFirst(0) },
	"another program": func() {
		onThread(func() { _ = syscall.Exec("/bin/sh", []string{"sh", "-c", "exit 5"}, nil) })
	},
	"a signal": func() {
		onThread(func() { _ = unix.Kill(unix.Getpid(), unix.SIGKILL) })
	},
}
