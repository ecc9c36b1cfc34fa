package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/passfd"
)

// Conn is one side of the channel. One goroutine may receive while any number send.
type Conn struct {
	socket    *os.File
	receiving sync.Mutex // guards buffer
	buffer    []byte
}

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
	return &Conn{socket: socket, buffer: make([]byte, MaxMessageBytes)}
}

// Close ends the channel; the other side sees io.EOF.
func (c *Conn) Close() error { return c.socket.Close() }

// CloseSend ends the sending direction. The other side sees io.EOF, and its last messages
// can still be received.
func (c *Conn) CloseSend() error { return passfd.CloseSend(c.socket) }

// SendRequest sends a request; only the gate calls it.
func (c *Conn) SendRequest(r Request) error { return c.send(r, nil) }

// ReceiveRequest receives a request; only the broker calls it. It closes descriptors that
// come with a request, because an honest gate sends none.
func (c *Conn) ReceiveRequest() (Request, error) {
	var r Request
	files, err := c.receive(&r)
	closeAll(files)
	return r, err
}

// SendAnswer sends an answer; only the broker calls it. The broker keeps its own copies of a.Files.
func (c *Conn) SendAnswer(a Answer) error { return c.send(a, a.Files) }

// ReceiveAnswer receives an answer; only the gate calls it. It owns the files.
func (c *Conn) ReceiveAnswer() (Answer, error) {
	var a Answer
	files, err := c.receive(&a)
	if err != nil {
		closeAll(files)
		return Answer{}, err
	}
	a.Files = files
	return a, nil
}

// send writes one packet. sendmsg(2) on a SOCK_SEQPACKET socket is atomic, so concurrent
// senders need no lock.
func (c *Conn) send(message any, files []*os.File) error {
	data, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("cannot encode message: %w", err)
	}
	if len(data) > MaxMessageBytes || len(files) > MaxFiles {
		return fmt.Errorf("cannot send message: %d bytes and %d files are too many", len(data), len(files))
	}
	if _, err := passfd.Send(c.socket, data, files...); err != nil {
		return fmt.Errorf("cannot send message: %w", err)
	}
	return nil
}

// receive reads one packet into message. It returns io.EOF when the other side is gone or
// this side was closed.
func (c *Conn) receive(message any) (files []*os.File, err error) {
	c.receiving.Lock()
	defer c.receiving.Unlock()
	n, fds, err := passfd.Receive(c.socket, c.buffer, MaxFiles)
	if err == io.EOF || errors.Is(err, os.ErrClosed) {
		return nil, io.EOF // no message is empty, so 0 bytes mean the end
	}
	for _, fd := range fds {
		files = append(files, os.NewFile(uintptr(fd), "received"))
	}
	if err == nil {
		// Unmarshal copies what it keeps, so the buffer can be used again.
		err = json.Unmarshal(c.buffer[:n], message)
	}
	if err != nil {
		closeAll(files)
		return nil, fmt.Errorf("cannot receive message: %w", err)
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, file := range files {
		file.Close()
	}
}
