package passfd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// Messages is one side of a SOCK_SEQPACKET socket on which each packet is one JSON value.
// One goroutine may receive while any number send.
type Messages struct {
	socket    *os.File
	maxFiles  int
	receiving sync.Mutex // guards buffer
	buffer    []byte
}

// NewMessages takes over a non-blocking file. A message has at most maxBytes, and maxFiles
// descriptors.
func NewMessages(socket *os.File, maxBytes, maxFiles int) *Messages {
	return &Messages{socket: socket, maxFiles: maxFiles, buffer: make([]byte, maxBytes)}
}

// Close ends the channel; the other side sees io.EOF.
func (m *Messages) Close() error { return m.socket.Close() }

// CloseSend ends the sending direction. The other side sees io.EOF, and its last messages
// can still be received.
func (m *Messages) CloseSend() error { return CloseSend(m.socket) }

// File is the descriptor, which stays that of m.
func (m *Messages) File() *os.File { return m.socket }

// ErrTooLong says that a message does not fit into a packet. Nothing was sent.
var ErrTooLong = errors.New("the message is too long for its channel")

// Send writes one packet; files stay the sender's. sendmsg(2) on a SOCK_SEQPACKET socket is
// atomic, so concurrent senders need no lock. It waits while the other side's buffer is full.
func (m *Messages) Send(message any, files ...*os.File) error {
	data, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("cannot encode message: %w", err)
	}
	if len(data) > len(m.buffer) || len(files) > m.maxFiles {
		return fmt.Errorf("cannot send message of %d bytes and %d files: %w", len(data), len(files), ErrTooLong)
	}
	if _, err := Send(m.socket, data, files...); err != nil {
		return fmt.Errorf("cannot send message: %w", err)
	}
	return nil
}

// Receive reads one packet into message, and closes descriptors that come with it. It
// returns io.EOF when the other side is gone or this side was closed.
func (m *Messages) Receive(message any) error {
	files, err := m.ReceiveFiles(message)
	closeFiles(files)
	return err
}

// ReceiveFiles is Receive for a message that may have descriptors; the caller owns them.
func (m *Messages) ReceiveFiles(message any) (files []*os.File, err error) {
	m.receiving.Lock()
	defer m.receiving.Unlock()
	n, fds, err := Receive(m.socket, m.buffer, m.maxFiles)
	if err == io.EOF || errors.Is(err, os.ErrClosed) {
		return nil, io.EOF // no message is empty, so 0 bytes mean the end
	}
	for _, fd := range fds {
		files = append(files, os.NewFile(uintptr(fd), "received"))
	}
	if err == nil {
		// Unmarshal copies what it keeps, so the buffer can be used again.
		err = json.Unmarshal(m.buffer[:n], message)
	}
	if err != nil {
		closeFiles(files)
		return nil, fmt.Errorf("cannot receive message: %w", err)
	}
	return files, nil
}

func closeFiles(files []*os.File) {
	for _, file := range files {
		file.Close()
	}
}
