package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/mod/sumdb/tlog"
	"golang.org/x/sys/unix"

	"clove.run/clove/internal/atomicfile"
	"clove.run/clove/internal/descriptor"
)

// writer is the files of a log. One goroutine uses it, but for head's unwritten count and durable.
type writer struct {
	dir     string
	options Options
	head    headFile
	hashes  *storedHashes
	file    *os.File // the segment in use
	size    int64    // its bytes that are durable
	soft    int64    // where the reserve begins
	failure error    // of an fdatasync or the like: what is on the disk is not known

	tip     tip           // durable
	durable atomic.Uint64 // tip's size, for all goroutines
	staged  stage

	signed     uint64    // records that the last checkpoint covers
	signedTime time.Time // when it was made
}

// tip is the end of the chain.
type tip struct {
	hash tlog.Hash
	tree tree
}

// stage is what the next sync makes durable.
type stage struct {
	tip
	text    []byte
	hashes  []tlog.Hash
	answers []func(error)
}

func (w *writer) path(name string) string { return filepath.Join(w.dir, name) }

// commit writes the orders and answers those that a caller waits for. It returns the others
// that had no space.
func (w *writer) commit(orders []order) (left []order) {
	w.staged = stage{tip: w.tip}
	for _, o := range orders {
		first, err := w.stage(o)
		switch {
		case o.answer != nil && err == nil:
			w.staged.answers = append(w.staged.answers, func(err error) { o.answer <- appendResult{first, err} })
		case o.answer != nil:
			o.answer <- appendResult{err: err}
		case err == nil:
			w.staged.answers = append(w.staged.answers, func(err error) {
				if err != nil {
					left = append(left, o)
				}
			})
		default:
			left = append(left, o)
		}
		if w.staged.tree.size-w.tip.tree.size >= w.options.CheckpointRecords/2 {
			_ = w.sync() // answered
			w.checkpointWhenDue()
		}
	}
	_ = w.sync() // answered
	return left
}

// stage adds an order's records to what the next sync writes. It makes space where there is none.
func (w *writer) stage(o order) (first uint64, err error) {
	if o.change != nil {
		if err := w.sync(); err != nil {
			return 0, err
		}
		return w.tip.tree.size, o.change(w)
	}
	next := tip{w.staged.hash, tree{w.staged.tree.size, slices.Clone(w.staged.tree.last)}}
	first = next.tree.size + 1
	var text []byte
	var hashes []tlog.Hash
	for _, e := range o.entries {
		line, added, err := next.add(e)
		if err != nil {
			return 0, err
		}
		text, hashes = append(text, line...), append(hashes, added...)
	}
	if err := w.makeRoom(int64(len(text)), o.end); err != nil {
		return 0, err
	}
	s := &w.staged
	s.tip, s.text, s.hashes = next, append(s.text, text...), append(s.hashes, hashes...)
	return first, nil
}

// add moves the tip behind one more record.
func (t *tip) add(e Entry) (line []byte, added []tlog.Hash, err error) {
	line, hash, err := e.line(t.tree.size+1, t.hash)
	if err != nil {
		return nil, nil, err
	}
	added, err = t.tree.add(hash)
	t.hash = hash
	return line, added, err
}

// makeRoom sees that bytes fit behind what is staged, in the next segment if need be.
func (w *writer) makeRoom(bytes int64, end bool) error {
	if w.failure != nil {
		return w.failure
	}
	if w.size+int64(len(w.staged.text))+bytes <= w.soft {
		return nil
	}
	if bytes > w.options.SegmentBytes-w.options.ReserveBytes {
		return fmt.Errorf("%d bytes of entries do not fit into a segment", bytes)
	}
	if err := w.sync(); err != nil {
		return err
	}
	full := w.rotate()
	if full != nil && end && w.failure == nil && w.size+bytes <= w.options.SegmentBytes {
		return nil
	}
	return full
}

// sync makes durable what is staged, then notes it in head, then answers: an acknowledged
// record is whole on the disk, and head has its number.
func (w *writer) sync() error {
	s := w.staged
	w.staged = stage{tip: w.tip}
	err := w.failure
	if len(s.text) > 0 {
		err = w.put(s)
	}
	if err == nil {
		w.size += int64(len(s.text))
		w.tip = s.tip
		w.staged.tip = s.tip
		w.durable.Store(s.tree.size) // before the answers: who has one finds its records
	}
	for _, answer := range s.answers {
		answer(err)
	}
	return err
}

func (w *writer) put(s stage) error {
	if w.failure != nil {
		return w.failure
	}
	if _, err := w.file.WriteAt(s.text, w.size); err != nil {
		// Some of it may be there. It must go before the next write, which may be shorter.
		if undone := w.file.Truncate(w.size); undone != nil {
			w.failure = storage("a segment", undone)
		} else {
			w.allocate()
		}
		return storage("a segment", err)
	}
	err := descriptor.Use(w.file, unix.Fdatasync)
	if err == nil {
		err = w.hashes.write(tlog.StoredHashCount(int64(w.tip.tree.size)), s.hashes)
	}
	if err == nil {
		err = w.head.put(head{count: s.tree.size, hash: s.hash, boot: w.head.now.boot})
	}
	if err != nil {
		// After a failed sync the content of the disk is unknown. Open finds out.
		w.failure = storage("a segment", err)
	}
	return w.failure
}

// rotate begins the next segment. Nothing is staged.
func (w *writer) rotate() error {
	if w.size == 0 {
		return storageOf(w.allocate())
	}
	old, size := w.file, w.size
	if err := w.begin(); err != nil {
		return storage("the next segment", err)
	}
	// The rest of the old one's space is given back.
	err := errors.Join(old.Truncate(size), old.Close(), w.hashes.file.Sync(), w.head.sync())
	if err != nil {
		w.failure = storage("a segment", err)
	}
	return w.failure
}

// begin makes the segment that follows the tip. If it fails, the one in use stays.
func (w *writer) begin() error {
	file, err := w.create()
	if err != nil {
		return err
	}
	if err := w.reserve(file, 0, w.options.SegmentBytes); err != nil {
		return errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	w.file, w.size, w.soft = file, 0, w.options.SegmentBytes-w.options.ReserveBytes
	return nil
}

// beginFirst is begin for a log without a segment, which opens also on a full disk: then the
// segment has space for ends of runs only, if any.
func (w *writer) beginFirst() error {
	file, err := w.create()
	if err != nil {
		return err
	}
	w.file, w.size = file, 0
	_ = w.allocate() // w.soft says how it went
	return nil
}

func (w *writer) create() (*os.File, error) {
	path := w.path(segmentName(w.tip.tree.size + 1))
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := atomicfile.Sync(w.dir); err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(path))
	}
	return file, nil
}

// finish marks the log as closed, after a last checkpoint.
func (w *writer) finish() error {
	err := w.checkpoint()
	end := w.head.now
	end.closed = true
	return errors.Join(err, w.hashes.file.Sync(), w.head.put(end), w.head.sync())
}

func (w *writer) close() error {
	var errs []error
	for _, file := range []*os.File{w.file, w.head.file} {
		if file != nil {
			errs = append(errs, file.Close())
		}
	}
	w.hashes.close()
	return errors.Join(errs...)
}
