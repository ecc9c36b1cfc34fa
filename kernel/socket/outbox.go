package socket

import (
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// writeTime bounds how long a line waits for a client that does not read.
	writeTime = 10 * time.Second
	// maxWaiting bounds the bytes that wait for one client. The gate's memory is not the
	// agent's.
	maxWaiting = 256 << 10
)

// outbox writes the lines of one connection. put never blocks: a client that does not read
// must not hold the answers of the agent's other connections.
type outbox struct {
	mu      sync.Mutex // guards the following
	lines   []byte     // joined: the gate's filter has no writev(2)
	writing bool       // a goroutine writes
	closed  bool
}

// put sends a line, after those before it. The connection ends where too much waits.
func (o *outbox) put(conn *net.UnixConn, line []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	if len(o.lines)+len(line) > maxWaiting {
		o.closed = true
		conn.Close()
		return
	}
	if !o.writing { // mostly there is room, and no other goroutine is needed
		if line = line[tryWrite(conn, line):]; len(line) == 0 {
			return
		}
	}
	o.lines = append(o.lines, line...)
	if !o.writing {
		o.writing = true
		go o.write(conn)
	}
}

// tryWrite writes what there is room for, and returns how much that was. An error is found by
// write, too. It is not sendmsg(2), which the gate's filter allows on its channel alone.
func tryWrite(conn *net.UnixConn, line []byte) (n int) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { n, _ = unix.Write(int(fd), line) })
	return max(0, n)
}

// write writes until nothing waits.
func (o *outbox) write(conn *net.UnixConn) {
	for {
		lines, closed := o.take()
		if len(lines) == 0 {
			if closed {
				conn.Close()
			}
			return
		}
		err := conn.SetWriteDeadline(time.Now().Add(writeTime))
		if err == nil {
			_, err = conn.Write(lines)
		}
		if err != nil {
			o.close(conn)
			conn.Close()
		}
	}
}

// take returns what waits, and ends the writing if that is nothing.
func (o *outbox) take() (lines []byte, closed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	lines, o.lines = o.lines, nil
	o.writing = len(lines) > 0
	return lines, o.closed
}

// close takes no more lines, and closes the connection when those that wait are written.
func (o *outbox) close(conn *net.UnixConn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed = true; !o.writing {
		conn.Close()
	}
}
