package runtime

import (
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/descriptor"
)

// copyInput passes the user's input on until it ends, the agent closes its end, or stopped
// hangs up (nil: it never does). It waits in poll(2) and never in a read: a read that is
// still pending when the agent has ended would take the next line from the shell. keyboard is held
// while it reads (nil: nothing else reads the input).
func copyInput(to io.Writer, from, stopped *os.File, keyboard sync.Locker) {
	if from == nil {
		return
	}
	buffer := make([]byte, 32<<10)
	for {
		n := readOrStop(from, stopped, keyboard, buffer)
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
func readOrStop(from, stopped *os.File, keyboard sync.Locker, buffer []byte) (n int) {
	_ = descriptor.Use(from, func(input int) error {
		if stopped == nil {
			n = readWhenReady(input, -1, keyboard, buffer)
			return nil
		}
		return descriptor.Use(stopped, func(stop int) error { n = readWhenReady(input, stop, keyboard, buffer); return nil })
	})
	return n
}

// readWhenReady polls again on EAGAIN: others that share the open file may have set it
// non-blocking, or have taken the bytes first. What is there when it has the keyboard is looked at again.
func readWhenReady(input, stop int, keyboard sync.Locker, buffer []byte) int {
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
		n, err := readNow(input, keyboard, buffer)
		if err == unix.EINTR || err == unix.EAGAIN {
			continue
		}
		return n
	}
}

// readNow reads what is there. The error is EAGAIN where what was there has gone to another reader.
func readNow(input int, keyboard sync.Locker, buffer []byte) (int, error) {
	if keyboard == nil {
		return unix.Read(input, buffer)
	}
	keyboard.Lock()
	defer keyboard.Unlock()
	fds := []unix.PollFd{{Fd: int32(input), Events: unix.POLLIN}}
	if n, err := unix.Poll(fds, 0); n == 0 && err == nil {
		return 0, unix.EAGAIN
	}
	return unix.Read(input, buffer)
}
