package service

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"sync/atomic"
	"time"

	"clove.run/clove/api"
	"clove.run/clove/audit"
	"clove.run/clove/store"
)

// mover moves the audit entries that were written with changes from the store's queue to
// the log. A crash between the two leaves an entry in both; the log's record has its
// number in the queue, so the next engine leaves it out.
type mover struct {
	store  *store.Kernel
	log    Log
	update func(what string, decide func(*store.KernelTx) error) error

	full  atomic.Bool // the log had space only for past decisions
	news  chan struct{}
	end   chan struct{}
	ended chan error

	moved     atomic.Uint64 // the highest number that the log has
	forgotten uint64        // up to which the mover itself has emptied the queue
}

// moveAtOnce bounds one append to the log.
const moveAtOnce = 256

// moveEvery is the least time between two appends. Each waits for the disk, as the changes
// do that are made meanwhile.
const moveEvery = 20 * time.Millisecond

func (m *mover) start(queued uint64) {
	m.news, m.end, m.ended = make(chan struct{}, 1), make(chan struct{}), make(chan error, 1)
	m.moved.Store(queued)
	m.news <- struct{}{} // what an earlier process left
	m.full.Store(m.log.Room() != nil)
	go func() {
		for {
			select {
			case <-m.news:
				_ = m.move() // tried again with the next entry, and at the end
				select {
				case <-time.After(moveEvery):
				case <-m.end:
				}
			case <-m.end:
				m.ended <- cmp.Or(m.move(), m.forget())
				return
			}
		}
	}()
}

func (m *mover) wake() {
	select {
	case m.news <- struct{}{}:
	default:
	}
}

func (m *mover) close() error {
	close(m.end)
	return <-m.ended
}

// move moves what the queue has. It is called by one goroutine.
func (m *mover) move() error {
	for {
		var queue []store.AuditEntry
		err := m.store.Read(func(tx *store.KernelTx) (err error) {
			queue, err = store.AuditQueue.After(tx, m.moved.Load(), moveAtOnce)
			return err
		})
		if err != nil || len(queue) == 0 {
			return err
		}
		entries, err := decoded(queue)
		if err != nil {
			return err
		}
		if err := m.Append(entries); err != nil {
			return err
		}
		m.moved.Store(queue[len(queue)-1].Number)
		if m.moved.Load()-m.forgotten < moveAtOnce {
			continue // the next call that changes something removes them, without a commit more
		}
		if err := m.forget(); err != nil {
			return err
		}
	}
}

// Append writes entries of what is decided. On a full disk they go into the log's reserve,
// and nothing more is decided (Room).
func (m *mover) Append(entries []audit.Entry) error {
	_, err := m.log.Append(entries...)
	if !errors.Is(err, audit.ErrStorage) {
		return err
	}
	m.full.Store(true)
	_, err = m.log.AppendEnd(entries...)
	return err
}

// Room refuses a decision while the log has no space for its entry.
func (m *mover) Room() error {
	if !m.full.Load() {
		return nil
	}
	if err := m.log.Room(); err != nil {
		return api.Failure(api.CodeStorage, "", "the audit log has no space for the decision: %v", err)
	}
	m.full.Store(false)
	m.wake() // what did not fit into the reserve
	return nil
}

// forget removes from the queue what the log has.
func (m *mover) forget() error {
	m.forgotten = m.moved.Load()
	return m.update("audit", func(tx *store.KernelTx) error { return store.AuditQueue.DeleteUpTo(tx, m.forgotten) })
}

func decoded(queue []store.AuditEntry) ([]audit.Entry, error) {
	entries := make([]audit.Entry, len(queue))
	for i, q := range queue {
		if err := json.Unmarshal(q.Entry, &entries[i]); err != nil {
			return nil, errors.Join(errors.New("an entry of the audit queue cannot be read"), err)
		}
		entries[i].Queue = q.Number
	}
	return entries, nil
}

// Queued returns the highest number of the file's queue that the log in dir has, and has the
// file number the next entries above it: a file that was made anew, or that is from a backup,
// would otherwise give numbers again, and their entries would be left out.
func Queued(file *store.Kernel, dir string) (number uint64, err error) {
	if number, err = lastQueued(dir); err != nil {
		return 0, err
	}
	return number, file.Update(func(tx *store.KernelTx) error { return store.AuditQueue.Continue(tx, number) })
}

// lastQueued reads the log from its end. Refusals have no number, and any number of them may
// follow the last entry that has one.
func lastQueued(dir string) (number uint64, err error) {
	for last := moveAtOnce; ; last *= 16 {
		read := 0
		err := audit.Query(dir, audit.Filter{Last: last}, func(e audit.Entry) error {
			read++
			number = max(number, e.Queue)
			return nil
		})
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return 0, nil
		case err != nil || number > 0 || read < last:
			return number, err
		}
	}
}

// Waiting is how many entries of decisions are in the store and not in the log yet; 0 where
// the store cannot be read.
func (m *mover) Waiting() (count int) {
	_ = m.store.Read(func(tx *store.KernelTx) (err error) {
		count, err = store.AuditQueue.Count(tx, m.moved.Load())
		return err
	})
	return count
}

// Queued are the entries of decisions that are in the store and not in the log yet, the oldest first.
func (m *mover) Queued() (entries []audit.Entry, err error) {
	var queue []store.AuditEntry
	err = m.store.Read(func(tx *store.KernelTx) (err error) {
		queue, err = store.AuditQueue.After(tx, m.moved.Load(), queuedMost)
		return err
	})
	if err != nil {
		return nil, err
	}
	return decoded(queue)
}

// queuedMost bounds the answer of Queued. The queue is that long only while the log cannot be written.
const queuedMost = 16 * moveAtOnce
