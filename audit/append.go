package audit

import (
	"errors"
	"fmt"
	"time"

	"clove.run/clove/agent"
)

// queueMax bounds the entries that wait in memory. A caller that is refused then must refuse
// what it was about to do: nothing happens without its entry.
const queueMax = 1 << 14

// flushAfter is how long Enqueue's entries wait for more. With the commit that follows they
// are durable within 100 ms.
const flushAfter = 50 * time.Millisecond

// retryAfter is how soon a full disk is tried again.
const retryAfter = time.Second

// checkpointTick is how often the age of the last checkpoint is looked at.
const checkpointTick = time.Minute

// appendMax bounds the entries of one call.
const appendMax = 256

// order is what one call handed over.
type order struct {
	entries []Entry
	end     bool                // it may use the reserve
	answer  chan answer         // nil: nobody waits
	change  func(*writer) error // instead of entries
}

type answer struct {
	first uint64
	err   error
}

// Append writes the entries, which get consecutive numbers from first, and returns when they
// are durable. All are written or none; after an error other than those of KindInvalid,
// entries may be found in the log after the next Open.
func (l *Log) Append(entries ...Entry) (first uint64, err error) {
	return l.hand(order{entries: stamped(entries)})
}

// AppendEnd is Append for what must be written also on a full disk: the ends of runs.
func (l *Log) AppendEnd(entries ...Entry) (first uint64, err error) {
	return l.hand(order{entries: stamped(entries), end: true})
}

// stamped copies the entries, with the time where they have none.
func stamped(entries []Entry) []Entry {
	now := time.Now()
	copies := make([]Entry, 0, len(entries))
	for _, e := range entries {
		e = e.bounded()
		set(&e.Time, now)
		copies = append(copies, e)
	}
	return copies
}

// hand waits for the answer to an order.
func (l *Log) hand(o order) (uint64, error) {
	if n := len(o.entries); n > appendMax {
		return 0, &agent.Error{Kind: agent.KindInvalid, Step: step, Message: fmt.Sprintf("%d entries at once, at most %d are possible", n, appendMax)}
	}
	if len(o.entries) == 0 && o.change == nil {
		return 0, nil
	}
	o.answer = make(chan answer, 1)
	if err := l.take(o, 0); err != nil {
		return 0, err
	}
	signal(l.urgent)
	a := <-o.answer
	return a.first, a.err
}

// take puts an order into the queue.
func (l *Log) take(o order, enqueued int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return errClosed
	case l.failure != nil:
		return l.failure
	case l.enqueued+enqueued > queueMax:
		return &agent.Error{Kind: agent.KindBusy, Step: step, Message: fmt.Sprintf("%d entries wait to be written", l.enqueued), Err: ErrStorage}
	}
	if enqueued > 0 {
		// Before the entry counts as taken: what dies behind this is counted.
		if err := l.w.head.putUnwritten(l.unwritten + uint64(enqueued)); err != nil {
			return storage("head", err)
		}
		l.unwritten += uint64(enqueued)
		l.enqueued += enqueued
	}
	l.orders = append(l.orders, o)
	return nil
}

var errClosed = errors.New("the audit log is closed")

// Enqueue hands over an entry, which is durable within 100 ms and lost if the process is
// killed before. The error says that it was not taken.
func (l *Log) Enqueue(e Entry) error {
	if err := l.take(order{entries: stamped([]Entry{e})}, 1); err != nil {
		return err
	}
	signal(l.lazy)
	return nil
}

// write is the goroutine that writes. It ends when the log is closed and nothing is left that
// can be written.
func (l *Log) write() {
	defer close(l.ended)
	due := checkpointTick
	for {
		l.await(due)
		l.mu.Lock()
		orders, closed := l.orders, l.closed
		l.orders = nil
		l.mu.Unlock()
		left := l.round(orders)
		if closed {
			return
		}
		due = checkpointTick
		if len(left) > 0 {
			due = retryAfter
		}
	}
}

func (l *Log) await(due time.Duration) {
	select {
	case <-l.urgent:
		return
	case <-time.After(due):
		return
	case <-l.lazy:
	}
	select {
	case <-l.urgent:
	case <-time.After(flushAfter):
	}
}

// round writes the orders and answers them. It returns those that nobody waits for and that
// must be tried again; they are first in the queue.
func (l *Log) round(orders []order) []order {
	left := l.w.commit(orders)
	failure := l.w.failure
	if failure == nil {
		l.w.checkpointWhenDue()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failure = failure
	l.orders = append(left, l.orders...)
	l.enqueued = 0
	for _, o := range l.orders {
		if o.answer == nil {
			l.enqueued += len(o.entries)
		} else if failure != nil {
			o.answer <- answer{err: failure}
		}
	}
	if failure != nil {
		l.orders = nil
		return nil
	}
	if l.unwritten != uint64(l.enqueued) && l.w.head.putUnwritten(uint64(l.enqueued)) == nil {
		l.unwritten = uint64(l.enqueued)
	}
	return left
}

// storage is an error of the disk.
func storage(what string, err error) error {
	return &agent.Error{Kind: agent.KindInternal, Step: step, Message: what + " cannot be written", Err: errors.Join(ErrStorage, err),
		Hint: "look at the disk with the state directory: df -h"}
}
