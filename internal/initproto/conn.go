package initproto

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// headerBytes is the length that stands before each message.
const headerBytes = 4

// Conn is one side of the connection. It is an os.File and not a net.Conn
// because package net costs clove-init start time and memory. One goroutine
// may receive while others send.
type Conn struct {
	file *os.File
	raw  syscall.RawConn

	sending sync.Mutex // one frame at a time: guards the socket's write side
}

// Pair makes a connection: the supervisor's side, and the file that
// clove-init inherits as ControlFD. The caller closes the file once
// clove-init has it: the end of the supervisor's side is the lifeline's end
// only if nobody else holds it, and the other way round.
func Pair() (*Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make control socket: %w", err)
	}
	inherited := os.NewFile(uintptr(fds[1]), "control-init")
	conn, err := NewConn(fds[0])
	if err != nil {
		inherited.Close()
		return nil, nil, err
	}
	return conn, inherited, nil
}

// NewConn takes over the socket fd, closing it on failure. It makes it
// non-blocking, which deadlines need, and close-on-exec.
func NewConn(fd int) (*Conn, error) {
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("cannot take control socket: %w", err)
	}
	file := os.NewFile(uintptr(fd), "control")
	raw, err := file.SyscallConn()
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot take control socket: %w", err)
	}
	return &Conn{file: file, raw: raw}, nil
}

// Close ends the connection; a blocked Receive returns.
func (c *Conn) Close() error { return c.file.Close() }

// CloseSend says that no more messages come: the other side's Receive gives
// io.EOF once it has read those that did.
func (c *Conn) CloseSend() error {
	var shutErr error
	err := c.raw.Control(func(fd uintptr) { shutErr = unix.Shutdown(int(fd), unix.SHUT_WR) })
	if err := errors.Join(err, shutErr); err != nil {
		return fmt.Errorf("cannot end messages: %w", err)
	}
	return nil
}

// SetReceiveDeadline bounds Receive from now on. After it passed in the middle
// of a frame the connection is of no use any more.
func (c *Conn) SetReceiveDeadline(t time.Time) error { return c.file.SetReadDeadline(t) }

// SetSendDeadline does the same for Send.
func (c *Conn) SetSendDeadline(t time.Time) error { return c.file.SetWriteDeadline(t) }

// Send writes one message, with Started.Terminal's descriptor where there is
// one; the sender still owns its copy. It is safe for concurrent use.
func (c *Conn) Send(m Message) error {
	data, err := Encode(m)
	if err != nil {
		return err
	}
	var rights []byte
	if m.Started != nil && m.Started.Terminal != nil {
		rights = unix.UnixRights(int(m.Started.Terminal.Fd()))
	}
	frame := make([]byte, headerBytes, headerBytes+len(data))
	binary.BigEndian.PutUint32(frame, uint32(len(data)))
	c.sending.Lock()
	defer c.sending.Unlock()
	if err := c.write(append(frame, data...), rights); err != nil {
		return fmt.Errorf("cannot send message: %w", err)
	}
	return nil
}

// write sends all of data; rights go with its first byte.
func (c *Conn) write(data, rights []byte) error {
	for len(data) > 0 {
		var n int
		var sendErr error
		err := c.raw.Write(func(fd uintptr) bool {
			n, sendErr = retry(func() (int, error) {
				return unix.SendmsgN(int(fd), data, rights, nil, unix.MSG_NOSIGNAL)
			})
			return sendErr != unix.EAGAIN
		})
		if err := errors.Join(err, sendErr); err != nil {
			return err
		}
		data, rights = data[n:], nil
	}
	return nil
}

// Receive reads one message. io.EOF means that the other side is gone and
// nothing is left to read; any other error but a deadline that found no byte
// ends the use of the connection.
func (c *Conn) Receive() (Message, error) {
	header := make([]byte, headerBytes)
	file, err := c.readHeader(header)
	if err != nil {
		return Message{}, err
	}
	m, err := c.readBody(int64(binary.BigEndian.Uint32(header)))
	if err == nil && file != nil && m.Started == nil {
		err = errors.New("cannot receive message: it brought a descriptor")
	}
	if err != nil {
		if file != nil {
			file.Close()
		}
		return Message{}, err
	}
	if m.Started != nil {
		m.Started.Terminal = file
	}
	return m, nil
}

func (c *Conn) readBody(size int64) (Message, error) {
	if size > MaxMessageBytes {
		return Message{}, fmt.Errorf("cannot receive message: %d bytes are more than %d", size, MaxMessageBytes)
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(c.file, data); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return Message{}, fmt.Errorf("cannot receive message: %w", err)
	}
	return Decode(data)
}

// readHeader fills header. The kernel never hands out bytes of two sends with
// descriptors in one read, so the descriptor comes with the first byte.
func (c *Conn) readHeader(header []byte) (*os.File, error) {
	n, file, err := c.receive(header)
	if err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(c.file, header[n:]); err != nil {
		if file != nil {
			file.Close()
		}
		return nil, fmt.Errorf("cannot receive message: %w", io.ErrUnexpectedEOF)
	}
	return file, nil
}

// receive is one recvmsg(2) that may bring one descriptor.
func (c *Conn) receive(buffer []byte) (int, *os.File, error) {
	var n, controlBytes int
	var receiveErr error
	control := make([]byte, unix.CmsgSpace(4))
	err := c.raw.Read(func(fd uintptr) bool {
		n, receiveErr = retry(func() (int, error) {
			n, oob, _, _, err := unix.Recvmsg(int(fd), buffer, control, unix.MSG_CMSG_CLOEXEC)
			controlBytes = oob
			return n, err
		})
		return receiveErr != unix.EAGAIN
	})
	// A peer that closes with bytes unread resets the connection; for the
	// reader that is an end like any other.
	if errors.Is(receiveErr, unix.ECONNRESET) || (err == nil && receiveErr == nil && n == 0) {
		return 0, nil, io.EOF
	}
	if err := errors.Join(err, receiveErr); err != nil {
		return 0, nil, fmt.Errorf("cannot receive message: %w", err)
	}
	file, err := descriptor(control[:controlBytes])
	return n, file, err
}

// descriptor takes the one descriptor out of control data; where there are
// more it closes them all, so that no sender can fill the table.
func descriptor(control []byte) (*os.File, error) {
	if len(control) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil, fmt.Errorf("cannot receive descriptor: %w", err)
	}
	var fds []int
	for _, message := range messages {
		rights, err := unix.ParseUnixRights(&message)
		if err != nil {
			continue // not descriptors: nothing to close
		}
		fds = append(fds, rights...)
	}
	if len(fds) == 1 {
		// Non-blocking, so that the owner's Close ends the owner's Read.
		if err := unix.SetNonblock(fds[0], true); err != nil {
			unix.Close(fds[0])
			return nil, fmt.Errorf("cannot receive descriptor: %w", err)
		}
		return os.NewFile(uintptr(fds[0]), "terminal"), nil
	}
	for _, fd := range fds {
		unix.Close(fd)
	}
	return nil, fmt.Errorf("cannot receive descriptor: %d came at once", len(fds))
}

// retry repeats call while a signal interrupts it.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != unix.EINTR {
			return n, err
		}
	}
}
