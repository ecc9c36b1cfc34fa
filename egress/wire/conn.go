package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Conn is one side of the channel. One goroutine may receive while any number
// send.
type Conn struct {
	file *os.File
	raw  syscall.RawConn

	receiving sync.Mutex // one packet at a time: guards buffer and control
	buffer    []byte
	control   []byte
}

// Pair makes a channel: the broker's side, and the file that clove-gate
// inherits. The caller closes the file once the gate has it.
func Pair() (*Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make the gate's channel: %w", err)
	}
	gate := os.NewFile(uintptr(fds[1]), "gate-channel")
	conn, err := NewConn(os.NewFile(uintptr(fds[0]), "broker-channel"))
	if err != nil {
		gate.Close()
		return nil, nil, err
	}
	return conn, gate, nil
}

// NewConn takes over a file that Pair made. It makes it non-blocking, so that
// Close ends a Receive.
func NewConn(file *os.File) (*Conn, error) {
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	file.Close()
	if err != nil {
		return nil, fmt.Errorf("cannot take the gate's channel: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("cannot take the gate's channel: %w", err)
	}
	owned := os.NewFile(uintptr(fd), "gate-channel")
	raw, err := owned.SyscallConn()
	if err != nil {
		owned.Close()
		return nil, fmt.Errorf("cannot take the gate's channel: %w", err)
	}
	return &Conn{file: owned, raw: raw, buffer: make([]byte, MaxMessageBytes), control: make([]byte, unix.CmsgSpace(4*MaxFiles))}, nil
}

// Close ends the channel; the other side sees io.EOF.
func (c *Conn) Close() error { return c.file.Close() }

// CloseSend says that nothing more comes: the other side sees io.EOF, and what
// it has still to say can be received.
func (c *Conn) CloseSend() error {
	var shutErr error
	err := c.raw.Control(func(fd uintptr) { shutErr = unix.Shutdown(int(fd), unix.SHUT_WR) })
	return errors.Join(err, shutErr)
}

// SendRequest is the gate's.
func (c *Conn) SendRequest(r Request) error { return c.send(r, nil) }

// ReceiveRequest is the broker's. Descriptors that come with a request are
// closed: a gate has none to give.
func (c *Conn) ReceiveRequest() (Request, error) {
	var r Request
	files, err := c.receive(&r)
	closeAll(files)
	return r, err
}

// SendAnswer is the broker's; it keeps its own copies of a.Files.
func (c *Conn) SendAnswer(a Answer) error { return c.send(a, a.Files) }

// ReceiveAnswer is the gate's, who owns the files.
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

func (c *Conn) send(message any, files []*os.File) error {
	data, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("cannot encode message: %w", err)
	}
	if len(data) > MaxMessageBytes || len(files) > MaxFiles {
		return fmt.Errorf("cannot send message: %d bytes and %d files are too many", len(data), len(files))
	}
	rights, err := rightsOf(files)
	if err != nil {
		return err
	}
	var sendErr error
	err = c.raw.Write(func(fd uintptr) bool {
		for {
			sendErr = unix.Sendmsg(int(fd), data, rights, nil, unix.MSG_NOSIGNAL)
			if sendErr != unix.EINTR {
				return sendErr != unix.EAGAIN
			}
		}
	})
	if err := errors.Join(err, sendErr); err != nil {
		return fmt.Errorf("cannot send message: %w", err)
	}
	return nil
}

// rightsOf never calls File.Fd, which would make the file blocking for all who
// share it.
func rightsOf(files []*os.File) ([]byte, error) {
	if len(files) == 0 {
		return nil, nil
	}
	fds := make([]int, 0, len(files))
	for _, file := range files {
		raw, err := file.SyscallConn()
		if err == nil {
			err = raw.Control(func(fd uintptr) { fds = append(fds, int(fd)) })
		}
		if err != nil {
			return nil, fmt.Errorf("cannot send descriptor: %w", err)
		}
	}
	return unix.UnixRights(fds...), nil
}

// receive reads one packet into message.
func (c *Conn) receive(message any) ([]*os.File, error) {
	c.receiving.Lock()
	defer c.receiving.Unlock()
	n, controlBytes, flags, err := c.packet()
	if err != nil {
		return nil, err
	}
	files, err := descriptors(c.control[:controlBytes])
	if err == nil && flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		err = errors.New("cannot receive message: it is too long, or brings too many descriptors")
	}
	if err == nil {
		err = json.Unmarshal(c.buffer[:n], message)
	}
	if err != nil {
		closeAll(files)
		return nil, fmt.Errorf("cannot receive message: %w", err)
	}
	return files, nil
}

// packet is one recvmsg(2); io.EOF when the other side is gone.
func (c *Conn) packet() (n, control, flags int, err error) {
	var receiveErr error
	err = c.raw.Read(func(fd uintptr) bool {
		for {
			n, control, flags, _, receiveErr = unix.Recvmsg(int(fd), c.buffer, c.control, unix.MSG_CMSG_CLOEXEC)
			if receiveErr != unix.EINTR {
				return receiveErr != unix.EAGAIN
			}
		}
	})
	// Without deadlines, the one thing that ends the wait is this side's Close.
	if err != nil || errors.Is(receiveErr, unix.ECONNRESET) || (receiveErr == nil && n == 0) {
		return 0, 0, 0, io.EOF // no message is empty
	}
	if receiveErr != nil {
		return 0, 0, 0, fmt.Errorf("cannot receive message: %w", receiveErr)
	}
	return n, control, flags, nil
}

func descriptors(control []byte) ([]*os.File, error) {
	if len(control) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil, fmt.Errorf("cannot parse control data: %w", err)
	}
	var files []*os.File
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue // not descriptors: nothing to close
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, file := range files {
		file.Close()
	}
}
