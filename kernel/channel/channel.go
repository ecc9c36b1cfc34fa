// Package channel is the typed channel between clove-gate, which reads what an agent
// writes to its socket, and cloved, which answers the calls.
//
// It is a SOCK_SEQPACKET pair. Each message is one packet of JSON that one side encoded
// itself (internal/packet); no packet contains text of the agent's as the agent wrote it.
//
//	clove-gate ── Call, Cancel ────▶ cloved
//	           ◀── Answer, Notice ──
//	           ◀── Notice, Away ──── supervisor
//
// The supervisor makes the pair and passes a descriptor of its end to cloved, so that a call
// takes one way there and one back. It keeps the end. Notifications that the supervisor needs too, and those that
// come before cloved has the descriptor, go by it. While cloved is away, and where none
// runs, the supervisor itself serves the calls.
//
// The side that serves trusts no packet: a gate may have been taken over. It bounds them
// (MaxMessageBytes, MaxCalls) and checks each as if the agent itself had written it.
package channel

import (
	"encoding/json"
	"errors"
	"os"

	"clove.run/clove/api"
	"clove.run/clove/internal/packet"
)

// MaxMessageBytes bounds a packet. An agent's line, api.MaxAgentLine, fits into it with its
// envelope.
const MaxMessageBytes = packet.MaxBytes

// ErrTooLong says that a message does not fit into a packet. Nothing was sent.
var ErrTooLong = packet.ErrTooLong

// MaxCalls is how many calls of one agent may be in flight.
const MaxCalls = 128

// FromGate is a message of the gate. Exactly one field is set.
type FromGate struct {
	Call   *Call  `json:"call,omitempty"`
	Cancel uint64 `json:"cancel,omitempty"` // the number of a call whose caller has gone, or asked for that
}

// Call is one call of the agent.
type Call struct {
	Number uint64          `json:"number"` // the gate's own; it repeats only for a call that waits, and is sent again when its process has gone
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// ToGate is a message to the gate. Exactly one field is set.
type ToGate struct {
	Answer *Answer `json:"answer,omitempty"`
	Notice *Notice `json:"notice,omitempty"`
	// Away is the answer to all calls in flight: the process that would answer has gone.
	Away *api.Error `json:"away,omitempty"`
}

// Answer is that of the call with the same number. Exactly one of Result and Error is set.
type Answer struct {
	Number uint64          `json:"number"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *api.Error      `json:"error,omitempty"`
}

// Notice is a notification for the agent.
type Notice struct{ api.Notice }

// Conn is one side. One goroutine may receive while any number send.
type Conn struct{ *packet.Conn }

// Pair makes a channel: the supervisor's side, and the file for the gate, which the
// caller closes when the gate has it.
func Pair() (*Conn, *os.File, error) {
	own, gate, err := packet.Pair()
	return &Conn{own}, gate, err
}

// Both is Pair for two sides in one process.
func Both() (*Conn, *Conn, error) {
	own, file, err := Pair()
	if err != nil {
		return nil, nil, err
	}
	other, err := packet.Inherited(file)
	if err != nil {
		own.Close()
		return nil, nil, err
	}
	return own, &Conn{other}, nil
}

// New takes over a file that Pair made, non-blocking.
func New(file *os.File) *Conn { return &Conn{packet.New(file)} }

// Send writes one packet.
func (c *Conn) Send(message any) error { return c.Conn.Send(message) }

// Receive reads one packet into message. No honest side passes descriptors: one that does
// is an error.
func (c *Conn) Receive(message any) error {
	files, err := c.Conn.Receive(message)
	packet.CloseAll(files)
	if err == nil && len(files) > 0 {
		err = errors.New("a message brings descriptors")
	}
	return err
}
