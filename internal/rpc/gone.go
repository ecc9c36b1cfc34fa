package rpc

import (
	"os"

	"golang.org/x/sys/unix"
)

// WhenGone calls act once the other side has closed the connection, also while nothing
// is read from it: a session with input that is not read would otherwise outlive its
// caller. A half-close (shutdown(2), SHUT_WR) does not count. stop ends the watch, and
// does not wait for act.
func (c *Conn) WhenGone(act func()) (stop func()) {
	socket, ok := c.Conn.(interface{ File() (*os.File, error) })
	if !ok {
		return func() {} // a pipe in memory: reading reports its end
	}
	// A descriptor of its own: the connection's can have one reader at a time.
	file, err := socket.File()
	if err != nil {
		return func() {} // too many files are open: the end is noticed with the next read or write
	}
	raw, err := file.SyscallConn()
	if err != nil {
		file.Close()
		return func() {}
	}
	go func() {
		defer file.Close()
		err := raw.Read(func(fd uintptr) bool {
			// poll(2): POLLHUP needs not be asked for. It is set when both
			// directions are closed, and data that is left does not hide it.
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd)}}, 0)
			return n > 0 || err != nil && err != unix.EINTR
		})
		if err == nil {
			act()
		}
	}()
	return func() { file.Close() }
}
