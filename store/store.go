package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// Store is the open file. Its methods may be called from many goroutines.
type Store struct {
	path string
	lock *fileLock
	db   *bbolt.DB
	file *os.File // bbolt's own, to let go of it when bbolt no longer can
	// broken is set by a panic inside bbolt, which leaves its locks as they
	// were: nothing may wait for them after that.
	broken atomic.Bool
	// pages is held for writing while free pages are overwritten, else for reading.
	pages sync.RWMutex
}

// Open waits at most timeout for its turn at the file at path, and makes the
// file where there is none. While the Store is open nobody else can use the
// file, so hold it for one or two calls and Close it. The error is of
// KindBusy, and names the holder, when the timeout passed.
func Open(path string, timeout time.Duration) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, explain(path, err)
	}
	if err := prepareDir(filepath.Dir(path)); err != nil {
		return nil, explain(path, err)
	}
	deadline := time.Now().Add(timeout)
	lock, err := acquire(path+".lock", deadline)
	if errors.Is(err, errBusy) {
		return nil, busy(path, path+".lock", timeout.String())
	}
	if err != nil {
		return nil, explain(path, err)
	}
	s := &Store{path: path, lock: lock}
	err = s.open(deadline)
	if errors.Is(err, bbolterrors.ErrTimeout) {
		err = busy(path, path, timeout.String())
	}
	if err != nil {
		s.Close() // the first error is the one to tell
		return nil, explain(path, err)
	}
	return s, nil
}

// Close lets the next process in.
func (s *Store) Close() error {
	var err error
	switch {
	case s.broken.Load() && s.file != nil:
		// The mapping is left behind on purpose: unmapping needs bbolt's locks.
		err = (&fileLock{s.file}).release()
	case s.db != nil:
		err = s.db.Close()
	}
	if err = errors.Join(err, s.lock.release()); err != nil {
		return explain(s.path, fmt.Errorf("cannot close: %w", err))
	}
	return nil
}

// open opens the file behind the lock and brings it to the newest schema.
func (s *Store) open(deadline time.Time) (err error) {
	defer s.edge(&err, debug.SetPanicOnFault(true))
	if _, err := os.Lstat(s.path); errors.Is(err, fs.ErrNotExist) {
		if err := create(s.path); err != nil {
			return fmt.Errorf("cannot create the file: %w", err)
		}
	}
	s.db, err = bbolt.Open(s.path, 0o600, &bbolt.Options{
		// Only a program that is not clove can hold this lock now. 0 would
		// mean to wait for ever.
		Timeout:      max(time.Until(deadline), time.Millisecond),
		NoStatistics: true,
		OpenFile:     s.openFile,
	})
	if err != nil {
		s.db = nil
		return err
	}
	return s.upgrade(migrations)
}

// openFile is bbolt's way to the file. Neither a missing file nor an empty one
// may be initialised in place: see create.
func (s *Store) openFile(path string, flag int, mode os.FileMode) (*os.File, error) {
	file, err := os.OpenFile(path, flag&^os.O_CREATE|unix.O_NOFOLLOW, mode)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.Size() == 0 {
		err = fmt.Errorf("%w: it is empty", errDamaged)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	s.file = file
	return file, nil
}

// upgrade refuses a file from the future or one cut short, and migrates one
// from the past.
func (s *Store) upgrade(steps []migration) error {
	var version int
	err := s.db.View(func(tx *bbolt.Tx) error {
		info, err := s.file.Stat()
		if err != nil {
			return err
		}
		if info.Size() < tx.Size() {
			return fmt.Errorf("%w: it has %d bytes of %d", errDamaged, info.Size(), tx.Size())
		}
		version, err = schemaOf(tx)
		return err
	})
	switch newest := newestSchema(steps); {
	case err != nil:
		return err
	case version > newest:
		return newer(s.path, version, newest)
	case version < newest:
		if err := s.backup(version); err != nil {
			return fmt.Errorf("cannot keep a copy of schema %d: %w", version, err)
		}
		return s.db.Update(func(tx *bbolt.Tx) error { return migrate(tx, steps) })
	}
	return nil
}

// view and update run f in one transaction. They are the edge: every panic
// and fault of bbolt ends here as an error.
func (s *Store) view(f func(*tables) error) (err error) {
	defer s.edge(&err, debug.SetPanicOnFault(true))
	if s.broken.Load() {
		return errDamaged
	}
	s.pages.RLock()
	defer s.pages.RUnlock()
	return s.db.View(func(tx *bbolt.Tx) error { return within(tx, f) })
}

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

// commit runs f in a transaction, and tells whether a run was removed by it.
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

func within(tx *bbolt.Tx, f func(*tables) error) error {
	t, err := tablesOf(tx)
	if err != nil {
		return err
	}
	return f(t)
}

// edge is deferred around all use of bbolt. faults is the goroutine's former
// answer to a memory fault, which is a panic meanwhile: a page that cannot be
// read from the disk is one.
func (s *Store) edge(err *error, faults bool) {
	debug.SetPanicOnFault(faults)
	if value := recover(); value != nil {
		if own, ok := value.(callerPanic); ok {
			panic(own.value)
		}
		s.broken.Store(true)
		*err = fmt.Errorf("%w: %v", errDamaged, value)
	}
	*err = explain(s.path, *err)
}

// called runs a caller's function so that its panic stays its own.
func called(change func(*agent.Run), run *agent.Run) {
	defer func() {
		if value := recover(); value != nil {
			panic(callerPanic{value})
		}
	}()
	change(run)
}
