package initproto

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/passfd"
)

// headerBytes is the length prefix of each message.
const headerBytes = 4

// Conn is one side of the connection. One goroutine may receive while others send.
type Conn struct {
	socket  *os.File
	sending sync.Mutex // guards the socket's write side: one frame at a time
}

// Pair makes a connection: the supervisor's side, and the file that clove-init inherits as
// ControlFD. The caller must close the file after the start of clove-init. Each side
// detects the other's end by the end of file, which comes only when no other process has
// the other end open.
func Pair() (*Conn, *os.File, error) {
	socket, inherited, err := passfd.Pair(unix.SOCK_STREAM)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make control socket: %w", err)
	}
	return &Conn{socket: socket}, inherited, nil
}

// NewConn takes over the socket fd, closing it on failure.
func NewConn(fd int) (*Conn, error) {
	socket, err := passfd.New(fd)
	if err != nil {
		return nil, fmt.Errorf("cannot take control socket: %w", err)
	}
	return &Conn{socket: socket}, nil
}

// Close ends the connection; a blocked Receive returns.
func (c *Conn) Close() error { return c.socket.Close() }

// CloseSend ends the sending direction: the other side's Receive returns io.EOF after the
// messages that were sent.
func (c *Conn) CloseSend() error {
	if err := passfd.CloseSend(c.socket); err != nil {
		return fmt.Errorf("cannot end messages: %w", err)
	}
	return nil
}

// SetReceiveDeadline bounds Receive from now on. If it passes in the middle of a frame, the
// connection cannot be used any more.
func (c *Conn) SetReceiveDeadline(t time.Time) error { return c.socket.SetReadDeadline(t) }

// Send writes one message, with its descriptor if it has one (Message.file); the sender
// keeps its copy. It is safe for concurrent use.
func (c *Conn) Send(m Message) error { return c.SendWithin(0, m) }

// SendWithin is Send that waits at most patience for a receiver that does not read; then
// the error is os.ErrDeadlineExceeded. 0 waits for ever.
func (c *Conn) SendWithin(patience time.Duration, m Message) error {
	data, err := Encode(m)
	if err != nil {
		return err
	}
	var files []*os.File
	if file := m.file(); file != nil && *file != nil {
		files = []*os.File{*file}
	}
	frame := make([]byte, headerBytes, headerBytes+len(data))
	binary.BigEndian.PutUint32(frame, uint32(len(data)))
	c.sending.Lock()
	defer c.sending.Unlock()
	if err := c.write(append(frame, data...), files, patience); err != nil {
		return fmt.Errorf("cannot send message: %w", err)
	}
	return nil
}

// write sends all of data. The files go with its first byte.
func (c *Conn) write(data []byte, files []*os.File, patience time.Duration) error {
	for len(data) > 0 {
		n, err := c.writeSome(data, files, patience)
		if err != nil {
			return err
		}
		data, files = data[n:], nil
	}
	return nil
}

// writeSome tries before it waits and again when the time has passed: a deadline can pass
// while this process is frozen or the host is busy, and a socket that has room must not
// lose a message for that.
func (c *Conn) writeSome(data []byte, files []*os.File, patience time.Duration) (int, error) {
	n, err := passfd.TrySend(c.socket, data, files...)
	if !errors.Is(err, unix.EAGAIN) {
		return n, err
	}
	var deadline time.Time // zero: none
	if patience != 0 {
		deadline = time.Now().Add(patience)
	}
	if err := c.socket.SetWriteDeadline(deadline); err != nil {
		return 0, err
	}
	n, err = passfd.Send(c.socket, data, files...)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	if late, again := passfd.TrySend(c.socket, data, files...); !errors.Is(again, unix.EAGAIN) {
		return late, again
	}
	return 0, err
}

// Receive reads one message. io.EOF means that the other side is gone and nothing is left
// to read. After any other error the connection cannot be used, except after a deadline
// before the first byte.
func (c *Conn) Receive() (Message, error) {
	header := make([]byte, headerBytes)
	file, err := c.readHeader(header)
	if err != nil {
		return Message{}, err
	}
	m, err := c.readBody(int64(binary.BigEndian.Uint32(header)))
	if err == nil && file != nil && m.file() == nil {
		err = errors.New("cannot receive message: it brought a descriptor")
	}
	if err != nil {
		if file != nil {
			file.Close()
		}
		return Message{}, err
	}
	if place := m.file(); place != nil {
		*place = file
	}
	return m, nil
}

// readBody reads the rest of a frame. The size is checked before memory is taken for it:
// neither side trusts the other (doc.go).
func (c *Conn) readBody(size int64) (Message, error) {
	if size > MaxMessageBytes {
		return Message{}, fmt.Errorf("cannot receive message: %d bytes are more than %d", size, MaxMessageBytes)
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(c.socket, data); err != nil {
		// The end of file in the middle of a frame is no end of the conversation.
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return Message{}, fmt.Errorf("cannot receive message: %w", err)
	}
	return Decode(data)
}

// readHeader fills header. The kernel never returns bytes of two sends with descriptors in
// one read (unix(7)), so the descriptor belongs to this frame.
func (c *Conn) readHeader(header []byte) (*os.File, error) {
	n, file, err := c.receive(header)
	if err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(c.socket, header[n:]); err != nil {
		if file != nil {
			file.Close()
		}
		return nil, fmt.Errorf("cannot receive message: %w", io.ErrUnexpectedEOF)
	}
	return file, nil
}

// receive reads once, and at most one descriptor.
func (c *Conn) receive(buffer []byte) (int, *os.File, error) {
	n, fds, err := passfd.Receive(c.socket, buffer, 1)
	if err == io.EOF {
		return 0, nil, err
	}
	if err != nil {
		return 0, nil, fmt.Errorf("cannot receive message: %w", err)
	}
	if len(fds) == 0 {
		return n, nil, nil
	}
	// Non-blocking, so that Go's poller handles it and Close ends a blocked Read.
	if err := unix.SetNonblock(fds[0], true); err != nil {
		unix.Close(fds[0])
		return 0, nil, fmt.Errorf("cannot receive descriptor: %w", err)
	}
	return n, os.NewFile(uintptr(fds[0]), "received"), nil
}
