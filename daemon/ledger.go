package daemon

import (
	"context"
	"encoding/json"
	"sync"

	"clove.run/clove/api"
)

// Memory that cloved holds for callers.
const (
	maxOwed       = 64 << 20  // bytes of requests and answers of one user, on all connections
	maxOwedRoot   = 128 << 20 // the same of root
	maxOwedRest   = 256 << 20 // the same of all users but root together
	maxOwedOne    = 32 << 20  // the same on one connection, of any user
	requestCost   = 16 << 10  // bytes for a request that is being answered, beside its text: stack, context, queue
	answerReserve = 256 << 10 // bytes that are set aside for an answer before it is made
	maxBatched    = 1 << 20   // bytes of the answers to one batch, unless the first alone has more
)

// ledger counts the bytes that cloved holds for one connection: a request until it is
// answered, an answer until it is written. Answers are made one after the other, and the
// next one to a single request only when the one before it has been written: a caller that
// does not read delays itself only. Without it, a caller that asks for many lists and reads
// none would make cloved hold all of them.
type ledger struct {
	uid   uint32
	bytes *slots // of all connections
	makes *slots // requests in progress, root's apart; nil: no bound

	making  chan struct{} // held while an answer is made
	writing chan struct{} // held from then until it is written, unless it belongs to a batch

	mu      sync.Mutex // guards the following
	held    int        // bytes that are counted for this connection
	reading int        // bytes of the line that is being read
}

// owed is one line, a request or a batch, that is not answered.
type owed struct {
	batch   bool
	bytes   int  // that are counted
	answers int  // of them, those of answers
	writing bool // it holds the ledger's writing
}

func newLedger(uid uint32, bytes *slots) *ledger {
	return &ledger{uid: uid, bytes: bytes, making: make(chan struct{}, 1), writing: make(chan struct{}, 1)}
}

// read counts bytes of the line that is being read.
func (l *ledger) read(n int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.take(n)
	if err == nil {
		l.reading += n
	}
	return err
}

// take counts n bytes for the connection, and give takes them back. l.mu is held.
func (l *ledger) take(n int) error {
	if l.held+n > maxOwedOne {
		return api.Failure(api.CodeBusy, "read the answers that wait", "a connection may have %d bytes of requests and unread answers, and no more", maxOwedOne)
	}
	// It never waits: these slots have no bound in all (newSlots), only bounds that refuse.
	err := l.bytes.take(context.Background(), l.uid, n)
	if err == nil {
		l.held += n
	}
	return err
}

func (l *ledger) give(n int) {
	l.held -= n
	l.bytes.give(l.uid, n)
}

// drop forgets the line that was read.
func (l *ledger) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.give(l.reading)
	l.reading = 0
}

// begin counts the line that was read, and its requests, until its answer is written.
func (l *ledger) begin(requests int, batch bool) (*owed, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.take(requestCost * requests); err != nil {
		return nil, err
	}
	line := &owed{batch: batch, bytes: l.reading + requestCost*requests}
	l.reading = 0
	return line, nil
}

// later is a long answer, which is made when there is space for it.
type later struct {
	reserve int // bytes that are set aside meanwhile; 0: answerReserve
	make    func() (any, error)
}

// answer makes the text of a request's answer, after the answers before it.
func (l *ledger) answer(ctx context.Context, line *owed, value any) (json.RawMessage, error) {
	if !line.batch {
		// The answer before it is written first. The answers of a batch are one line, and
		// are written together.
		if err := hold(ctx, l.writing); err != nil {
			return nil, err
		}
		line.writing = true // given back when the answer is written, also one that is an error
	}
	if err := hold(ctx, l.making); err != nil {
		return nil, err
	}
	defer func() { <-l.making }()
	// Space is taken before the answer is made, and corrected when its length is known: many
	// requests in progress at once cannot pass the bound together.
	work, isLater := value.(later)
	reserve := answerReserve
	if isLater && work.reserve > 0 {
		reserve = work.reserve // a supervisor makes it, in its own time and memory
	} else if l.makes != nil {
		leave, err := l.makes.enter(ctx, l.uid)
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	if err := l.count(line, reserve); err != nil {
		return nil, err
	}
	if isLater {
		var err error
		if value, err = work.make(); err != nil {
			return nil, err
		}
	}
	text, made := value.(json.RawMessage)
	if !made {
		var err error
		if text, err = json.Marshal(value); err != nil {
			return nil, err
		}
	}
	if line.batch && line.answers > 0 && line.answers+len(text) > maxBatched {
		return nil, api.Failure(api.CodeTooLarge, "ask for it in a line of its own", "the answers to one batch have at most %d bytes", maxBatched)
	}
	line.answers += len(text)
	// The reserved part is given back with its line (written), also where an answer failed.
	return text, l.count(line, len(text)-reserve)
}

// hold takes the one place.
func hold(ctx context.Context, place chan struct{}) error {
	select {
	case place <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// count takes bytes for a line, or gives some back, where n is below 0. Giving back never
// fails.
func (l *ledger) count(line *owed, n int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n < 0 {
		l.give(-n)
	} else if err := l.take(n); err != nil {
		return err
	}
	line.bytes += n
	return nil
}

// written forgets a line whose answer was written, or could not be.
func (l *ledger) written(line *owed) {
	l.mu.Lock()
	l.give(line.bytes)
	l.mu.Unlock()
	if line.writing {
		<-l.writing
	}
}

// close forgets all that the connection's end left unanswered.
func (l *ledger) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.give(l.held)
}
