package daemon

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lingerLook is between two looks whether a caller that only listens is there.
const lingerLook = 200 * time.Millisecond

// linger waits, for a caller that has said everything and still listens, as
// `nc -N` does, until it has all its answers.
func (c *conversation) linger() {
	ticker := time.NewTicker(lingerLook)
	defer ticker.Stop()
	for len(c.pending) > 0 && !c.hungUp() {
		select {
		case <-c.spoken:
		case <-ticker.C: // nothing tells of a hang-up but a look
		}
	}
}

// said tells linger that something was answered.
func (c *conversation) said() {
	select {
	case c.spoken <- struct{}{}:
	default: // it will look anyway
	}
}

// hungUp tells a caller that is gone from one that only stopped speaking: of
// poll(2)'s events POLLHUP says that both directions are closed.
func (c *conversation) hungUp() bool {
	socket, ok := c.conn.Conn.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := socket.SyscallConn()
	gone := true
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			events := []unix.PollFd{{Fd: int32(fd)}}
			n, err := unix.Poll(events, 0)
			gone = err == nil && n > 0 && events[0].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0
		})
	}
	return err != nil || gone
}
