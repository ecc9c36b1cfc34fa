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
)

// database is one open bbolt file behind its lock.
type database struct {
	path   string // absolute, for messages that hold from any directory
	format format
	lock   *fileLock
	db     *bbolt.DB
	file   *os.File // bbolt's own, to release its lock when bbolt no longer can
	// broken is set by a panic inside bbolt, which may leave bbolt's mutexes locked:
	// whatever waits for them after that, Close too, could wait for ever.
	broken atomic.Bool
	// pages is held for writing while free pages are overwritten, else for reading. bbolt's
	// own locks do not do: they let readers and a writer in together.
	pages sync.RWMutex
}

// format is what a file's bucket meta says: under which key the version of its
// schema is, and the migrations up to the newest one. Each file has a key of its own,
// so that none is opened in the place of another.
type format struct {
	version []byte
	steps   []migration
	buckets [][]byte // that the newest schema has
	held    string   // the hint where another process has the file; %s is its pid
}

// newest is the schema that this build reads and writes.
func (f format) newest() int { return f.steps[len(f.steps)-1].to }

// open waits at most timeout for the lock, and opens the file at path or creates it.
func (d *database) open(path string, f format, timeout time.Duration) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return explain(path, err)
	}
	if err := prepareDir(filepath.Dir(path)); err != nil {
		return explain(path, err)
	}
	d.path, d.format = path, f
	// One deadline for both locks, clove's and bbolt's: timeout bounds the whole call.
	deadline := time.Now().Add(timeout)
	d.lock, err = acquire(path+".lock", deadline)
	if errors.Is(err, errBusy) {
		return d.busy(path+".lock", timeout)
	}
	if err != nil {
		return explain(path, err)
	}
	err = d.openLocked(deadline)
	if errors.Is(err, bbolterrors.ErrTimeout) {
		err = d.busy(path, timeout)
	}
	if err != nil {
		d.Close() // the first error is the one to return
		return explain(path, err)
	}
	return nil
}

// Close releases the file for the next process.
func (d *database) Close() error {
	var err error
	switch {
	case d.broken.Load() && d.file != nil:
		// The mapping is left behind on purpose: unmapping needs bbolt's locks.
		err = (&fileLock{d.file}).release()
	case d.db != nil:
		// Before d.lock is released: the next process that gets that lock finds bbolt's
		// free, and does not fall back to bbolt's polling.
		err = d.db.Close()
	}
	if err = errors.Join(err, d.lock.release()); err != nil {
		return explain(d.path, fmt.Errorf("cannot close: %w", err))
	}
	return nil
}

// openLocked opens the file behind the lock and migrates it to the newest schema.
func (d *database) openLocked(deadline time.Time) (err error) {
	defer d.edge(&err, debug.SetPanicOnFault(true))
	if _, err := os.Lstat(d.path); errors.Is(err, fs.ErrNotExist) {
		if err := d.format.create(d.path); err != nil {
			return fmt.Errorf("cannot create the file: %w", err)
		}
	}
	d.db, err = bbolt.Open(d.path, 0o600, &bbolt.Options{
		// Only a program that is not clove can hold this lock now. 0 would
		// mean to wait for ever.
		Timeout:      max(time.Until(deadline), time.Millisecond),
		NoStatistics: true,
		OpenFile:     d.openFile,
	})
	if err != nil {
		d.db = nil
		return err
	}
	return d.upgrade(d.format)
}

// openFile is bbolt's way to the file. Neither a missing file nor an empty one
// may be initialised in place: see create.
func (d *database) openFile(path string, flag int, mode os.FileMode) (*os.File, error) {
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
	d.file = file
	return file, nil
}

// upgrade refuses a file from the future or one cut short, and migrates one
// from the past.
func (d *database) upgrade(f format) error {
	var version int
	err := d.db.View(func(tx *bbolt.Tx) error {
		info, err := d.file.Stat()
		if err != nil {
			return err
		}
		// bbolt maps more than the file has. Behind the end of a file that was cut short, a
		// read is SIGBUS (mmap(2)); here it is an error with both sizes.
		if info.Size() < tx.Size() {
			return fmt.Errorf("%w: it has %d bytes of %d", errDamaged, info.Size(), tx.Size())
		}
		version, err = f.schemaOf(tx)
		return err
	})
	switch newest := f.newest(); {
	case err != nil:
		return err
	case version > newest:
		return newer(d.path, version, newest)
	case version < newest:
		if err := d.backup(version); err != nil {
			return fmt.Errorf("cannot keep a copy of schema %d: %w", version, err)
		}
		return d.db.Update(f.migrate)
	}
	return nil
}

// view runs read in one transaction. Like every use of bbolt it is an edge: each
// panic and fault of bbolt ends here as an error.
func (d *database) view(read func(*bbolt.Tx) error) (err error) {
	defer d.edge(&err, debug.SetPanicOnFault(true))
	if d.broken.Load() {
		return errDamaged
	}
	d.pages.RLock()
	defer d.pages.RUnlock()
	return d.db.View(read)
}

// edge is deferred around all use of bbolt. faults is what debug.SetPanicOnFault(true)
// returned where the defer statement stands: from there until edge, a memory fault of this
// goroutine is a panic that edge turns into an error, and not the end of the process. A
// page of the mapping that the disk cannot deliver is such a fault. The setting is of one
// goroutine: reads of the mapping by another one are not protected (List, pageProblems).
func (d *database) edge(err *error, faults bool) {
	debug.SetPanicOnFault(faults)
	if value := recover(); value != nil {
		if own, ok := value.(callerPanic); ok {
			// A mistake of the caller's says nothing about the file.
			panic(own.value)
		}
		d.broken.Store(true)
		*err = fmt.Errorf("%w: %v", errDamaged, value)
	}
	*err = explain(d.path, *err)
}
