package wire

import (
	"os"

	"clove.run/clove/internal/packet"
)

// Conn is one side of the channel. One goroutine may receive while any number send.
type Conn struct{ *packet.Conn }

// Pair makes a channel: the broker's side, and the file that clove-gate inherits.
func Pair() (*Conn, *os.File, error) {
	own, gate, err := packet.Pair()
	return &Conn{own}, gate, err
}

// SendRequest sends a request; only the gate calls it.
func (c *Conn) SendRequest(r Request) error { return c.Send(r) }

// ReceiveRequest receives a request; only the broker calls it. It closes descriptors that
// come with a request, because an honest gate sends none.
func (c *Conn) ReceiveRequest() (Request, error) {
	var r Request
	files, err := c.Receive(&r)
	packet.CloseAll(files)
	return r, err
}

// SendAnswer sends an answer; only the broker calls it. The broker keeps its own copies of a.Files.
func (c *Conn) SendAnswer(a Answer) error { return c.Send(a, a.Files...) }

// ReceiveAnswer receives an answer; only the gate calls it. It owns the files.
func (c *Conn) ReceiveAnswer() (Answer, error) {
	var a Answer
	files, err := c.Receive(&a)
	if err != nil {
		return Answer{}, err
	}
	a.Files = files
	return a, nil
}
