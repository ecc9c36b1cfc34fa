package store

import (
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"

	"clove.run/clove/agent"
)

// Store is the open clove.db. Its methods may be called from many goroutines.
type Store struct{ database }

// runsFormat is that of clove.db, schema.go's.
var runsFormat = format{version: []byte("schema"), steps: migrations, buckets: [][]byte{bucketMeta, bucketRuns, bucketNames, bucketLeases, bucketEvents},
	held: "try again, or end it: kill %s frees the file and harms nothing in it"}

// Open opens the file at path, and creates it where there is none. While the Store
// is open no other process can use the file, so hold it for one or two calls and
// Close it. The error is of KindBusy, and names the holder, if the file was not
// free within timeout.
func Open(path string, timeout time.Duration) (*Store, error) {
	s := &Store{}
	if err := s.database.open(path, runsFormat, timeout); err != nil {
		return nil, err
	}
	return s, nil
}

// view and update run f in one transaction. update is an edge, as database.view is.
func (s *Store) view(f func(*tables) error) error {
	return s.database.view(func(tx *bbolt.Tx) error { return within(tx, f) })
}

// update erases after the commit, outside of the transaction: only then does no page on the
// disk refer to the removed text. An error of erase is reported although the change is
// stored: the user should know that a secret may still be readable.
func (s *Store) update(f func(*tables) error) (err error) {
	defer s.edge(&err, debug.SetPanicOnFault(true))
	if s.broken.Load() {
		return errDamaged
	}
	forgot, err := s.commit(f)
	// gofail: var storeCommitted string
	// if err == nil { err = failpoint(storeCommitted, lastNoted) }

	if err == nil && forgot {
		err = s.erase()
	}
	return err
}

// commit runs f in a transaction, and reports whether f removed a run.
func (s *Store) commit(f func(*tables) error) (forgot bool, err error) {
	s.pages.RLock()
	defer s.pages.RUnlock()
	err = s.db.Update(func(tx *bbolt.Tx) error {
		return within(tx, func(t *tables) error {
			err := f(t)
			forgot = t.forgot
			return err
		})
	})
	return forgot, err
}

// within opens the buckets of a transaction for f.
func within(tx *bbolt.Tx, f func(*tables) error) error {
	t, err := tablesOf(tx)
	if err != nil {
		return err
	}
	return f(t)
}

// called runs a caller's function. Its panic is wrapped, so that edge lets it pass and does
// not take it for a damaged page.
func called(change func(*agent.Run), run *agent.Run) {
	defer func() {
		if value := recover(); value != nil {
			panic(callerPanic{value})
		}
	}()
	change(run)
}
