package runtime

import (
	"io"
	"os"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/descriptor"
)

// copyInput passes the user's input on until it ends, the agent closes its end, or stopped
// hangs up (nil: it never does). It waits in poll(2) and never in a read: a read that is
// still pending when the agent has ended would take the next line from the shell.
func copyInput(to io.Writer, from, stopped *os.File) {
	if from == nil {
		return
	}
	buffer := make([]byte, 32<<10)
	for {
		n := readOrStop(from, stopped, buffer)
		if n <= 0 {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// readOrStop is one read; 0 or less is the end. Neither file is set to non-blocking: that
// mode belongs to the open file, which the user's shell shares.
func readOrStop(from, stopped *os.File, buffer []byte) (n int) {
	_ = descriptor.Use(from, func(input int) error {
		if stopped == nil {
			n = readWhenReady(input, -1, buffer)
			return nil
		}
		return descriptor.Use(stopped, func(stop int) error { n = readWhenReady(input, stop, buffer); return nil })
	})
	return n
}

// readWhenReady polls again on EAGAIN: others that share the open file may have set it
// non-blocking, or have taken the bytes first.
func readWhenReady(input, stop int, buffer []byte) int {
	for {
		// poll(2) ignores a negative descriptor.
		fds := []unix.PollFd{{Fd: int32(input), Events: unix.POLLIN}, {Fd: int32(stop)}}
		_, err := unix.Poll(fds, -1)
		switch {
		case err == unix.EINTR:
			continue
		// POLLHUP comes without being requested, when the other end of stopped is closed.
		case err != nil, fds[1].Revents != 0:
			return 0
		}
		n, err := unix.Read(input, buffer)
		if err == unix.EINTR || err == unix.EAGAIN {
			continue
		}
		return n
	}
}
