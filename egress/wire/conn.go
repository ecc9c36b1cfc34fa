package wire

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/passfd"
)

// Conn is one side of the channel. One goroutine may receive while any number send.
type Conn struct{ messages *passfd.Messages }

// Pair makes a channel: the broker's side, and the file that clove-gate inherits. The
// caller must close the file after the start of the gate; otherwise the broker never sees
// the gate's end.
func Pair() (*Conn, *os.File, error) {
	socket, gate, err := passfd.Pair(unix.SOCK_SEQPACKET)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make the gate's channel: %w", err)
	}
	return connOf(socket), gate, nil
}

// NewConn takes over a file that Pair made.
func NewConn(file *os.File) (*Conn, error) {
	// An inherited descriptor is not close-on-exec; its duplicate is.
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	file.Close()
	if err == nil {
		file, err = passfd.New(fd)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot take the gate's channel: %w", err)
	}
	return connOf(file), nil
}

func connOf(socket *os.File) *Conn {
	return &Conn{passfd.NewMessages(socket, MaxMessageBytes, MaxFiles)}
}

// Close ends the channel; the other side sees io.EOF.
func (c *Conn) Close() error { return c.messages.Close() }

// CloseSend ends the sending direction. The other side sees io.EOF, and its last messages
// can still be received.
func (c *Conn) CloseSend() error { return c.messages.CloseSend() }

// SendRequest sends a request; only the gate calls it.
func (c *Conn) SendRequest(r Request) error { return c.messages.Send(r) }

// ReceiveRequest receives a request; only the broker calls it. It closes descriptors that
// come with a request, because an honest gate sends none.
func (c *Conn) ReceiveRequest() (r Request, err error) {
	err = c.messages.Receive(&r)
	return r, err
}

// SendAnswer sends an answer; only the broker calls it. The broker keeps its own copies of a.Files.
func (c *Conn) SendAnswer(a Answer) error { return c.messages.Send(a, a.Files...) }

// ReceiveAnswer receives an answer; only the gate calls it. It owns the files.
func (c *Conn) ReceiveAnswer() (Answer, error) {
	var a Answer
	files, err := c.messages.ReceiveFiles(&a)
	if err != nil {
		return Answer{}, err
	}
	a.Files = files
	return a, nil
}
