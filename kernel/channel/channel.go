// Package channel is the typed channel between clove-gate, which reads what an agent
// writes to its socket, and the supervisor, which has the calls answered.
//
// It is a SOCK_SEQPACKET pair. Each message is one packet of JSON that one of the two
// encoded itself; no packet contains text of the agent's as the agent wrote it.
//
//	clove-gate ── Call, Cancel ─────▶ supervisor
//	           ◀── Answer, Notice ──
//
// A supervisor trusts no packet: a gate may have been taken over. It bounds them
// (MaxMessageBytes, MaxCalls) and checks each as if the agent itself had written it.
package channel

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"clove.run/clove/api"
	"clove.run/clove/internal/passfd"
)

const (
	// MaxMessageBytes bounds a packet. An agent's line, api.MaxAgentLine, fits into it
	// with its envelope.
	MaxMessageBytes = 96 << 10
	// MaxCalls is how many calls of one agent may be in flight.
	MaxCalls = 128
)

// FromGate is a message of the gate. Exactly one field is set.
type FromGate struct {
	Call   *Call  `json:"call,omitempty"`
	Cancel uint64 `json:"cancel,omitempty"` // the number of a call whose caller has gone, or asked for that
}

// Call is one call of the agent.
type Call struct {
	Number uint64          `json:"number"` // the gate's own; it never repeats
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// ToGate is a message of the supervisor. Exactly one field is set.
type ToGate struct {
	Answer *Answer `json:"answer,omitempty"`
	Notice *Notice `json:"notice,omitempty"`
}

// Answer is that of the call with the same number. Exactly one of Result and Error is set.
type Answer struct {
	Number uint64          `json:"number"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *api.Error      `json:"error,omitempty"`
}

// Notice is a notification for the agent.
type Notice struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// Conn is one side. One goroutine may receive while any number send.
type Conn struct {
	socket    *os.File
	receiving sync.Mutex // guards buffer
	buffer    []byte
}

// Pair makes a channel: the supervisor's side, and the file for the gate, which the
// caller closes when the gate has it.
func Pair() (*Conn, *os.File, error) {
	own, gate, err := passfd.Pair(unix.SOCK_SEQPACKET)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make the agent socket's channel: %w", err)
	}
	return New(own), gate, nil
}

// New takes over a file that Pair made, non-blocking.
func New(file *os.File) *Conn { return &Conn{socket: file, buffer: make([]byte, MaxMessageBytes)} }

// Close ends the channel; the other side sees io.EOF.
func (c *Conn) Close() error { return c.socket.Close() }

// File is the channel's descriptor, which stays the Conn's.
func (c *Conn) File() *os.File { return c.socket }

// Send writes one packet. sendmsg(2) on a SOCK_SEQPACKET socket is atomic, so concurrent
// senders need no lock. It waits while the other side's buffer is full.
func (c *Conn) Send(message any) error {
	data, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("cannot encode message: %w", err)
	}
	if len(data) > MaxMessageBytes {
		return ErrTooLong
	}
	_, err = passfd.Send(c.socket, data)
	return err
}

// ErrTooLong says that a message does not fit into a packet. Nothing was sent.
var ErrTooLong = errors.New("the message is too long for its channel")

// Receive reads one packet into message. It returns io.EOF when the other side is gone or
// this side was closed.
func (c *Conn) Receive(message any) error {
	c.receiving.Lock()
	defer c.receiving.Unlock()
	n, _, err := passfd.Receive(c.socket, c.buffer, 0)
	if err == io.EOF || errors.Is(err, os.ErrClosed) {
		return io.EOF // no message is empty, so 0 bytes mean the end
	}
	if err == nil {
		err = json.Unmarshal(c.buffer[:n], message)
	}
	if err != nil {
		return fmt.Errorf("cannot receive message: %w", err)
	}
	return nil
}
