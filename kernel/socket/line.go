package socket

import (
	"bytes"
	"errors"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/api"
)

// lineTime bounds how long a line may take from its first byte to its end. A connection
// on which no line has begun may stay silent.
const lineTime = 10 * time.Second

var (
	errForeign = errors.New("a byte came from outside of the sandbox")
	errRights  = errors.New("descriptors were sent along")
	errTooLong = errors.New("the line is too long")
)

// ids are the host's user ids of one sandbox.
type ids struct{ first, count uint32 }

func (r ids) has(id uint32) bool { return id-r.first < r.count } // also for smaller ids: they wrap around

// lines reads the lines of one connection, and who sent each part.
type lines struct {
	conn   *net.UnixConn
	allow  ids
	rest   []byte // read, and not returned yet
	timed  bool   // the connection has a deadline
	oob    [oobBytes]byte
	buffer [4 << 10]byte
}

// oobBytes is room for the sender's ids and for nothing else: the kernel closes
// descriptors for which there is no room (unix(7)), and says MSG_CTRUNC.
const oobBytes = 32 // CmsgSpace of struct ucred

// next returns the next line without its end. The slice is valid until the next call.
func (l *lines) next() ([]byte, error) {
	for {
		line, rest, found := bytes.Cut(l.rest, []byte("\n"))
		if len(line) > api.MaxAgentLine {
			return nil, errTooLong
		}
		if found {
			l.rest = rest
			return line, l.time(false)
		}
		if err := l.time(len(l.rest) > 0); err != nil {
			return nil, err
		}
		if err := l.more(); err != nil {
			return nil, err
		}
	}
}

// time bounds the wait for the rest of a line that has begun, or waits without a bound. A
// line that comes at once needs neither.
func (l *lines) time(begun bool) error {
	if l.timed == begun {
		return nil
	}
	l.timed = begun
	var end time.Time
	if begun {
		end = time.Now().Add(lineTime)
	}
	return l.conn.SetReadDeadline(end)
}

// more reads once. The bytes of one recvmsg(2) have one sender: the kernel does not join
// parts with different credentials (unix(7), SO_PASSCRED).
func (l *lines) more() error {
	n, oobn, flags, _, err := l.conn.ReadMsgUnix(l.buffer[:], l.oob[:])
	switch {
	case err != nil:
		return err
	case flags&unix.MSG_CTRUNC != 0:
		return errRights
	case n == 0:
		return io.EOF
	}
	if err := l.check(l.oob[:oobn]); err != nil {
		return err
	}
	l.rest = append(l.rest, l.buffer[:n]...)
	return nil
}

// check returns an error unless the control data names a sender of the sandbox.
func (l *lines) check(oob []byte) error {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return err
	}
	for i := range messages {
		if messages[i].Header.Type != unix.SCM_CREDENTIALS {
			return errRights
		}
		sender, err := unix.ParseUnixCredentials(&messages[i])
		if err != nil {
			return err
		}
		if l.allow.has(sender.Uid) {
			return nil
		}
	}
	return errForeign
}
