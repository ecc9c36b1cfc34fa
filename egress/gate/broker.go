package gate

import (
	"errors"
	"io"
	"sync"
	"time"

	"clove.run/clove/egress/wire"
)

// answerTimeout bounds the wait for the broker, whose own limits on dials and
// look-ups are shorter.
const answerTimeout = 60 * time.Second

var errNoAnswer = errors.New("the broker did not answer")

// broker is the gate's view of the other side.
type broker struct {
	conn *wire.Conn
	done <-chan struct{}

	mu      sync.Mutex // guards what follows
	lastID  uint64
	waiting map[uint64]chan wire.Answer
}

func newBroker(conn *wire.Conn, done <-chan struct{}) *broker {
	return &broker{conn: conn, done: done, waiting: map[uint64]chan wire.Answer{}}
}

// receive hands answers to who waits for them, until the channel ends.
func (b *broker) receive() error {
	for {
		answer, err := b.conn.ReceiveAnswer()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err // a descriptor may be lost with it: nobody could be served right
		}
		if waiter := b.remove(answer.ID); waiter != nil {
			waiter <- answer
		} else {
			go b.drop(answer) // may block, and this loop must not
		}
	}
}

// ask sends r and waits for its answer.
func (b *broker) ask(r wire.Request) (wire.Answer, error) {
	waiter := make(chan wire.Answer, 1) // so that receive never blocks
	b.mu.Lock()
	b.lastID++
	r.ID = b.lastID
	b.waiting[r.ID] = waiter
	b.mu.Unlock()
	if err := b.conn.SendRequest(r); err != nil {
		b.remove(r.ID)
		return wire.Answer{}, err
	}
	timeout := time.NewTimer(answerTimeout)
	defer timeout.Stop()
	select {
	case answer := <-waiter:
		return answer, nil
	case <-timeout.C:
	case <-b.done:
	}
	if b.remove(r.ID) == nil { // it came after all
		return <-waiter, nil
	}
	return wire.Answer{}, errNoAnswer
}

func (b *broker) remove(id uint64) chan wire.Answer {
	b.mu.Lock()
	defer b.mu.Unlock()
	waiter := b.waiting[id]
	delete(b.waiting, id)
	return waiter
}

// drop lets go of an answer that nobody can use.
func (b *broker) drop(answer wire.Answer) {
	closeFiles(answer.Files)
	b.closed(answer.Number, 0, 0)
}

// closed tells the end of a connection that the broker has numbered.
func (b *broker) closed(number uint64, rx, tx int64) {
	if number == 0 {
		return
	}
	// Without a channel there is nobody to tell, and the process is ending.
	_ = b.conn.SendRequest(wire.Request{Closed: &wire.Closed{Number: number, RxBytes: rx, TxBytes: tx}})
}
