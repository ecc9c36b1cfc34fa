// Package packet is a channel between two processes: each message is one packet of JSON on a
// SOCK_SEQPACKET pair, and may bring descriptors along. Other packages
// define the messages.
package packet

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

const (
	// MaxBytes bounds a packet.
	MaxBytes = 96 << 10
	// MaxFiles bounds the descriptors of one packet (SCM_MAX_FD is 253).
	MaxFiles = 240
)

// ErrTooLong says that a message does not fit into a packet. Nothing was sent.
var ErrTooLong = errors.New("the message is too long for its channel")

// Conn is one side. One goroutine may receive while any number send.
type Conn struct{ socket *os.File }

// buffers are for packets that are being received: a Conn that waits for one holds none.
var buffers = sync.Pool{New: func() any { return new([MaxBytes]byte) }}

// Pair makes a channel: one side, and the file that the other process inherits. The caller
// must close the file after the start of that process; otherwise it never sees its end.
func Pair() (*Conn, *os.File, error) {
	own, inherited, err := passfd.Pair(unix.SOCK_SEQPACKET)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a channel: %w", err)
	}
	return New(own), inherited, nil
}

// New takes over one side, non-blocking.
func New(file *os.File) *Conn { return &Conn{socket: file} }

// Inherited takes over a file that Pair made, in the process that inherited it.
func Inherited(file *os.File) (*Conn, error) {
	// An inherited descriptor is not close-on-exec; its duplicate is.
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	file.Close()
	if err == nil {
		file, err = passfd.New(fd)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot take over the channel: %w", err)
	}
	return New(file), nil
}

// Close ends the channel; the other side sees io.EOF.
func (c *Conn) Close() error { return c.socket.Close() }

// CloseSend ends the sending direction. The other side sees io.EOF, and its last messages
// can still be received.
func (c *Conn) CloseSend() error { return passfd.CloseSend(c.socket) }

// File is the channel's descriptor, which stays the Conn's.
func (c *Conn) File() *os.File { return c.socket }

// Send writes one packet; files stay the sender's. sendmsg(2) and write(2) on a SOCK_SEQPACKET socket are
// atomic, so concurrent senders need no lock. It waits while the other side's buffer is full.
func (c *Conn) Send(message any, files ...*os.File) error {
	data, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("cannot encode message: %w", err)
	}
	if len(data) > MaxBytes || len(files) > MaxFiles {
		return ErrTooLong
	}
	if len(files) == 0 {
		// Package confine allows sendmsg(2) only on sockets that a process had at its start, and write(2) on
		// those that came later, too.
		_, err = c.socket.Write(data)
	} else {
		_, err = passfd.Send(c.socket, data, files...)
	}
	if err != nil {
		return fmt.Errorf("cannot send message: %w", err)
	}
	return nil
}

// Receive reads one packet into message, with at most MaxFiles descriptors, which are the
// caller's. It returns io.EOF when the other side is gone or this side was closed.
func (c *Conn) Receive(message any) (files []*os.File, err error) {
	passfd.Await(c.socket)
	buffer := buffers.Get().(*[MaxBytes]byte)
	defer buffers.Put(buffer)
	n, fds, err := passfd.Receive(c.socket, buffer[:], MaxFiles)
	if err == io.EOF || errors.Is(err, os.ErrClosed) {
		return nil, io.EOF // no message is empty, so 0 bytes mean the end
	}
	for _, fd := range fds {
		files = append(files, os.NewFile(uintptr(fd), "received"))
	}
	if err == nil {
		// Unmarshal copies what it keeps, so the buffer can be used again.
		err = json.Unmarshal(buffer[:n], message)
	}
	if err != nil {
		CloseAll(files)
		return nil, fmt.Errorf("cannot receive message: %w", err)
	}
	return files, nil
}

// CloseAll closes what came along.
func CloseAll(files []*os.File) {
	for _, file := range files {
		file.Close()
	}
}
