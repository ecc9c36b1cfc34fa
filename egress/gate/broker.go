package gate

import (
	"errors"
	"io"
	"sync"
	"time"

	"clove.run/clove/egress/wire"
)

// answerTimeout bounds the wait for the broker. It is longer than the broker's own limits
// on dials and look-ups, and than people are waited for.
const answerTimeout = wire.HoldMost + 60*time.Second

const (
	// lookAfter is when a request without an answer is taken for a held one. Before that nothing more is done for it.
	lookAfter = 200 * time.Millisecond
	// lookEvery is how often the broker looks whether the client of a held request is there, where no event says that it has
	// gone: a datagram socket has none, and behind bytes that are not read there is none.
	lookEvery = 2 * time.Second
)

var errNoAnswer = errors.New("the broker did not answer")

// broker sends requests to the broker and matches its answers.
type broker struct {
	conn *wire.Conn
	done <-chan struct{}

	mu      sync.Mutex // guards the fields below
	lastID  uint64
	waiting map[uint64]chan wire.Answer // by ID; removed by receive, or by an ask that gives up
}

func newBroker(conn *wire.Conn, done <-chan struct{}) *broker {
	return &broker{conn: conn, done: done, waiting: map[uint64]chan wire.Answer{}}
}

// receive passes answers to their waiting requests until the channel ends.
func (b *broker) receive() error {
	for {
		answer, err := b.conn.ReceiveAnswer()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err // the message may have had a descriptor that is now lost
		}
		if waiter := b.remove(answer.ID); waiter != nil {
			waiter <- answer
		} else {
			go b.drop(answer) // its send may block, and this loop must not
		}
	}
}

// ask sends r and waits for its answer.
func (b *broker) ask(r wire.Request) (wire.Answer, error) { return b.askFor(r, nil) }

// askFor is ask for a client that may go away while people are asked; nil: there is none.
func (b *broker) askFor(r wire.Request, c *client) (wire.Answer, error) {
	waiter := make(chan wire.Answer, 1) // buffered, so that receive never blocks
	b.mu.Lock()
	b.lastID++
	r.ID = b.lastID
	b.waiting[r.ID] = waiter
	b.mu.Unlock()
	if err := b.conn.SendRequest(r); err != nil {
		b.remove(r.ID)
		return wire.Answer{}, err
	}
	timeout := time.NewTimer(lookAfter)
	defer timeout.Stop()
	select {
	case answer := <-waiter:
		return answer, nil
	case <-timeout.C: // rare: what a rule decides is answered before
		timeout.Reset(answerTimeout)
		if c != nil {
			defer c.watch(b, r.ID)()
		}
	case <-b.done:
	}
	select {
	case answer := <-waiter:
		return answer, nil
	case <-timeout.C:
	case <-b.done:
	}
	if b.remove(r.ID) == nil { // receive has taken the waiter: the answer is here or coming at once
		return <-waiter, nil
	}
	return wire.Answer{}, errNoAnswer
}

// remove takes a waiter out of the map. Only the first of two calls gets it, and owns the answer:
// receive to deliver it, ask to give up.
func (b *broker) remove(id uint64) chan wire.Answer {
	b.mu.Lock()
	defer b.mu.Unlock()
	waiter := b.waiting[id]
	delete(b.waiting, id)
	return waiter
}

// drop closes an answer that no request waits for, and reports its end: the broker counts
// the connection as open.
func (b *broker) drop(answer wire.Answer) {
	closeFiles(answer.Files)
	b.closed(answer.Number, 0, 0)
}

// closed reports the end of a connection that the broker has numbered.
func (b *broker) closed(number uint64, rx, tx int64) {
	if number == 0 {
		return
	}
	// An error means that the channel is gone, and then the process ends.
	_ = b.conn.SendRequest(wire.Request{Closed: &wire.Closed{Number: number, RxBytes: rx, TxBytes: tx}})
}
