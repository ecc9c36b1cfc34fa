package testhost

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// lockPath is on a tmpfs wherever there is one; the file outlives its holders.
const lockPath = "/run/clove-test.lock"

// hostLock takes the lock once for this process, which keeps it until it ends:
// the descriptor is a plain number, so nothing closes it earlier.
var hostLock = sync.OnceValue(func() error {
	_, err := lockFile(lockPath)
	return err
})

// lockFile waits for the lock of path without a time limit of its own: `go test -timeout`
// is the limit. It prints which process it waits for.
func lockFile(path string) (fd int, err error) {
	fd, err = unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	if err == unix.EWOULDBLOCK {
		holder, _ := os.ReadFile(path) // for the message only
		fmt.Fprintf(os.Stderr, "testhost: waiting for test process %s, which has this host\n", strings.TrimSpace(string(holder)))
		err = flockBlocking(fd)
	}
	if err == nil {
		err = writeHolder(fd)
	}
	if err != nil {
		unix.Close(fd)
		return -1, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	return fd, nil
}

// flockBlocking repeats the call when a signal of Go's scheduler interrupts it.
func flockBlocking(fd int) error {
	for {
		if err := unix.Flock(fd, unix.LOCK_EX); err != unix.EINTR {
			return err
		}
	}
}

// writeHolder notes this process for the message of those that wait. Truncated first:
// digits of a longer number could be left.
func writeHolder(fd int) error {
	if err := unix.Ftruncate(fd, 0); err != nil {
		return err
	}
	_, err := unix.Pwrite(fd, fmt.Appendln(nil, os.Getpid()), 0)
	return err
}
