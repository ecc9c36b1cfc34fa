package gate

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// chunkBytes bounds the bytes that one iteration of a relay reserves and moves. It is the
// largest pipe of an unprivileged user (pipe(7)).
const chunkBytes = 1 << 20

// traffic counts the bytes of one relay.
type traffic struct{ rx, tx atomic.Int64 } // rx: towards the agent

// stream is a side of a relay.
type stream interface {
	net.Conn
	io.ReaderFrom
	CloseWrite() error
	SetLinger(seconds int) error
	SyscallConn() (syscall.RawConn, error)
}

// local is a stream to another process of clove's.
type local struct{ *net.UnixConn }

// ReadFrom is as io.ReaderFrom's. splice(2) moves nothing into it: package net has it for TCP alone.
func (l local) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{l.UnixConn}, r)
}

// SetLinger has no meaning here: close(2) never waits, and drops nothing that was written.
func (l local) SetLinger(int) error { return nil }

// readable is what package net moves bytes from by splice(2).
func readable(from stream) io.Reader {
	if l, is := from.(local); is {
		return l.UnixConn
	}
	return from
}

// opener returns the first bytes of a relay.
type opener func() ([]byte, error)

// relay moves bytes between the agent's side and the other until both have ended, and
// closes both. first returns the agent's bytes that were read already; it may block while
// the other direction runs. An error in one direction resets both connections, as the peers
// would have seen it without the gate.
func (s *server) relay(agent, other stream, first opener, t *traffic) error {
	sending := make(chan error, 1)
	fail := func(err error) error {
		if err != nil {
			reset(agent)
			reset(other)
		}
		return err
	}
	go func() {
		bytes, err := first()
		if err == nil {
			err = s.forward(other, bytes, &t.tx)
		}
		if err == nil {
			err = s.pump(other, agent, &t.tx)
		}
		sending <- fail(err)
	}()
	err := fail(s.pump(agent, other, &t.rx))
	if other := <-sending; err == nil || (other != nil && errors.Is(err, net.ErrClosed)) {
		err = other // the direction that failed first has the cause; the other sees a closed socket
	}
	agent.Close()
	other.Close()
	return err
}

// forward writes the bytes that were read to find a name.
func (s *server) forward(to stream, bytes []byte, moved *atomic.Int64) error {
	for len(bytes) > 0 {
		n := s.limits.bytes.take(int64(len(bytes)))
		if n == 0 {
			return errBytes
		}
		if _, err := to.Write(bytes[:n]); err != nil {
			return err
		}
		moved.Add(n)
		bytes = bytes[n:]
	}
	return nil
}

// pump moves one direction until its end, and then shuts down the other side's direction too.
func (s *server) pump(to, from stream, moved *atomic.Int64) error {
	raw, err := from.SyscallConn()
	if err != nil {
		return err
	}
	ready := readiness{raw: raw}
	// Outside of the loop: ReadFrom takes it as an interface, so it is allocated once for
	// the relay and not for each piece.
	var part io.LimitedReader
	for {
		n, err := ready.wait()
		if err == io.EOF {
			return to.CloseWrite()
		}
		if err != nil {
			return err
		}
		reserved := s.limits.bytes.take(min(n, chunkBytes))
		if reserved == 0 {
			return errBytes
		}
		// ReadFrom uses splice(2), so the bytes never enter this process. It holds a pipe
		// only during the call, because the bytes have arrived already. If it had to wait,
		// each idle connection would hold the four descriptors of two pipes.
		part.R, part.N = readable(from), reserved
		if ready.urgent {
			part.R = struct{ io.Reader }{from} // splice(2) stops at urgent data, read(2) does not
		}
		carried, err := to.ReadFrom(&part)
		s.limits.bytes.give(reserved - carried)
		moved.Add(carried)
		if err != nil {
			return err
		}
	}
}

// readiness waits for bytes without reading them.
type readiness struct {
	raw   syscall.RawConn
	check func(fd uintptr) bool

	n      int64
	urgent bool // next is an urgent byte (tcp(7)), which splice(2) does not move
	err    error
}

// wait returns how many bytes can be read now; io.EOF at the end.
func (r *readiness) wait() (int64, error) {
	if r.check == nil {
		r.check = r.look // stored, because each method value is an allocation
	}
	if err := r.raw.Read(r.check); err != nil {
		return 0, err
	}
	return r.n, r.err
}

// look needs two system calls: FIONREAD returns 0 for no data, for the end, and for an
// urgent byte at the front. Bytes that arrive between the two calls are found by the second
// count, so they are not taken for urgent.
func (r *readiness) look(fd uintptr) bool {
	if r.count(fd) {
		return true
	}
	var one [1]byte
	n, _, err := unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return false
	case err == nil && n == 0:
		err = io.EOF
	case err == nil && r.count(fd):
		return true
	}
	r.n, r.urgent, r.err = int64(n), err == nil, err
	return true
}

// count reads the number of available bytes. It is false for none.
func (r *readiness) count(fd uintptr) bool {
	waiting, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ) // FIONREAD, tcp(7)
	r.n, r.urgent, r.err = int64(waiting), false, err
	return err != nil || waiting > 0
}

// reset closes with a RST.
func reset(conn stream) {
	_ = conn.SetLinger(0) // of a closed connection: nothing is left to reset
	conn.Close()
}
