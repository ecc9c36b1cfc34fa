package audit

import (
	"errors"
	"fmt"
	"time"

	"clove.run/clove/agent"
)

// queueMax bounds the entries that wait in memory. An entry without a principal is refused
// then; of the others only the number is kept.
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
	answer  chan appendResult   // nil: no caller waits
	change  func(*writer) error // instead of entries
}

type appendResult struct {
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

// Room reports whether Append would find space: nil, or the error of a full disk.
func (l *Log) Room() error {
	_, err := l.hand(order{change: func(w *writer) error { return w.makeRoom(lineMax, false) }})
	return err
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
	o.answer = make(chan appendResult, 1)
	if err := l.take(o); err != nil {
		return 0, err
	}
	signal(l.urgent)
	a := <-o.answer
	return a.first, a.err
}

// take puts an order into the queue.
func (l *Log) take(o order) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.usable(); err != nil {
		return err
	}
	l.orders = append(l.orders, o)
	return nil
}

// usable refuses what cannot be written any more. l.mu is held.
func (l *Log) usable() error {
	if l.closed {
		return errClosed
	}
	return l.failure
}

var errClosed = errors.New("the audit log is closed")

// Enqueue hands over an entry, which is durable within 100 ms and lost if the process is
// killed before. Of a principal that hands over too many, only their number is written
// (flood.go). The error says that the entry was not taken.
func (l *Log) Enqueue(e Entry) error {
	entries := stamped([]Entry{e})
	l.mu.Lock()
	err := l.enqueue(entries)
	l.mu.Unlock()
	if err == nil {
		signal(l.lazy)
	}
	return err
}

// enqueue takes one entry, or counts it. l.mu is held.
func (l *Log) enqueue(entries []Entry) error {
	if err := l.usable(); err != nil {
		return err
	}
	full := l.enqueued >= queueMax
	if f := l.floodOf(entries[0]); f != nil && (full || !f.Allow()) {
		return l.leaveOut(f, entries[0])
	}
	if full {
		return &agent.Error{Kind: agent.KindBusy, Step: step, Message: fmt.Sprintf("%d entries wait to be written", l.enqueued), Err: ErrStorage}
	}
	if err := l.miss(1); err != nil {
		return err
	}
	l.enqueued++
	l.orders = append(l.orders, order{entries: entries})
	return nil
}

// miss counts in head what is lost if the process dies now. It comes before the entry counts
// as taken. l.mu is held.
func (l *Log) miss(entries uint64) error {
	if err := l.w.head.putUnwritten(l.unwritten + entries); err != nil {
		return storage("head", err)
	}
	l.unwritten += entries
	return nil
}

// lost is how many entries are lost with an order: a gap stands for those that it counts.
func (o order) lost() (entries uint64) {
	for _, e := range o.entries {
		if e.Kind == KindGap {
			entries += max(1, e.Count)
		} else {
			entries++
		}
	}
	return entries
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

// round writes the orders and answers them. It returns those that no caller waits for and that
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
	unwritten := l.leftOut
	for _, o := range l.orders {
		if o.answer == nil {
			l.enqueued += len(o.entries)
			unwritten += o.lost()
		} else if failure != nil {
			o.answer <- appendResult{err: failure}
		}
	}
	if failure != nil {
		l.orders = nil
		return nil
	}
	if l.unwritten != unwritten && l.w.head.putUnwritten(unwritten) == nil {
		l.unwritten = unwritten
	}
	return left
}

// storage is an error of the disk.
func storage(what string, err error) error {
	return &agent.Error{Kind: agent.KindInternal, Step: step, Message: what + " cannot be written", Err: errors.Join(ErrStorage, err),
		Hint: "look at the disk with the state directory: df -h"}
}
