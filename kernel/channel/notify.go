package channel

import (
	"slices"
	"sync"
	"time"

	"clove.run/clove/api"
)

// maxWaiting bounds the notifications that wait until the gate reads.
const maxWaiting = 256

// Notifier sends notifications to a gate, beside the Serve of the same channel. Its callers do not wait for the gate.
type Notifier struct {
	conn *Conn

	mu      sync.Mutex // guards the following
	waiting []api.Notice
	sending bool // a goroutine sends what waits
	ended   bool
}

// NewNotifier returns one that sends on c, until End.
func NewNotifier(c *Conn) *Notifier { return &Notifier{conn: c} }

// Notify sends notifications behind those that wait. It reports whether it takes them: not behind End, nor where
// too many wait.
func (n *Notifier) Notify(all []api.Notice) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended || len(n.waiting)+len(all) > maxWaiting {
		return false
	}
	n.waiting = api.Joined(n.waiting, all...)
	if !n.sending {
		n.sending = true
		go n.send()
	}
	return true
}

// End has Notify take no more. What still waits is not sent, and is returned.
func (n *Notifier) End() (left []api.Notice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	left, n.waiting, n.ended = n.waiting, nil, true
	return left
}

func (n *Notifier) send() {
	for {
		n.mu.Lock()
		if len(n.waiting) == 0 {
			n.sending = false
			n.mu.Unlock()
			return
		}
		first := n.waiting[0]
		n.waiting = slices.Delete(n.waiting, 0, 1)
		n.mu.Unlock()
		_ = n.conn.File().SetWriteDeadline(time.Now().Add(sendTime))
		_ = n.conn.Send(ToGate{Notice: &Notice{Notice: first}}) // that the gate is gone, Serve notices
	}
}
