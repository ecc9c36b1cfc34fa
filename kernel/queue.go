package kernel

import (
	"encoding/json"
	"errors"
	"io/fs"

	"clove.run/clove/audit"
	"clove.run/clove/store"
)

// record queues an audit entry in the transaction of what it is about.
func record(tx *store.KernelTx, e audit.Entry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = tx.Record(text)
	return err
}

// mover moves the audit entries that were written with changes from the store's queue to
// the log. A crash between the two leaves an entry in both; the log's record has its
// number in the queue, so the next Kernel leaves it out.
type mover struct {
	news  chan struct{}
	end   chan struct{}
	ended chan error
}

// moveAtOnce bounds one append to the log.
const moveAtOnce = 256

func (m *mover) start(k *Kernel) {
	m.news, m.end, m.ended = make(chan struct{}, 1), make(chan struct{}), make(chan error, 1)
	m.news <- struct{}{} // what an earlier process left
	go func() {
		for {
			select {
			case <-m.news:
				_ = k.move() // tried again with the next entry, and at the end
			case <-m.end:
				m.ended <- k.move()
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

// move empties the queue. It is called by one goroutine.
func (k *Kernel) move() error {
	for {
		var queue []store.AuditEntry
		err := k.config.Store.Read(func(tx *store.KernelTx) (err error) {
			queue, err = tx.AuditQueue(k.config.Queued, moveAtOnce)
			return err
		})
		if err != nil || len(queue) == 0 {
			return err
		}
		entries, err := decoded(queue)
		if err != nil {
			return err
		}
		if _, err := k.config.Log.Append(entries...); err != nil {
			return err
		}
		k.config.Queued = queue[len(queue)-1].Number
		if err := k.update("audit", func(tx *store.KernelTx) error { return tx.ForgetAudit(k.config.Queued) }); err != nil {
			return err
		}
	}
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
	return number, file.Update(func(tx *store.KernelTx) error { return tx.ContinueAudit(number) })
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
