package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/descriptor"
)

// ErrStorage is in the error of what could not be written because the disk is full or failed.
var ErrStorage = errors.New("storage")

// Options are a log's sizes and its keys. The zero value is for the host's log, without
// checkpoints.
type Options struct {
	// SegmentBytes is the size of a segment, all of which is allocated when it is made;
	// 0 is 16 MiB. ReserveBytes of it are for AppendEnd alone; 0 is a quarter.
	SegmentBytes, ReserveBytes int64
	// Keys signs checkpoints; nil makes none.
	Keys *Keys
	// CheckpointRecords and CheckpointAfter bound what the last checkpoint does not cover;
	// 0 is 1024 records and 5 minutes.
	CheckpointRecords uint64
	CheckpointAfter   time.Duration
	// FloodBurst and FloodPerSecond bound the entries that Enqueue writes for one principal;
	// 0 is 100 and 10.
	FloodBurst, FloodPerSecond int
}

// RunOptions are those of the log of one foreground run: it is small, and the record that
// links it into the host's log stands for its checkpoints.
func RunOptions() Options { return Options{SegmentBytes: 1 << 20, ReserveBytes: 128 << 10} }

func (o Options) filled() (Options, error) {
	set(&o.SegmentBytes, 16<<20)
	set(&o.ReserveBytes, o.SegmentBytes/4)
	set(&o.CheckpointRecords, 1024)
	set(&o.CheckpointAfter, 5*time.Minute)
	set(&o.FloodBurst, floodBurst)
	set(&o.FloodPerSecond, floodPerSecond)
	if o.ReserveBytes < 0 || o.SegmentBytes-o.ReserveBytes < lineMax {
		return o, &agent.Error{Kind: agent.KindInvalid, Step: step, Message: fmt.Sprintf("a segment of %d bytes with a reserve of %d has no room for a record", o.SegmentBytes, o.ReserveBytes)}
	}
	return o, nil
}

func set[T comparable](value *T, otherwise T) {
	if *value == *new(T) {
		*value = otherwise
	}
}

// Dir is where the host's log lies, in the directory of the installation.
func Dir(state string) string { return filepath.Join(state, "audit") }

// KeyDir is where the keys of the host's log lie. No backup has them.
func KeyDir(state string) string { return filepath.Join(state, "keys", "audit") }

// step is that of this package's errors.
const step = "audit"

// Names in a log's directory.
const (
	headName        = "head"
	hashesName      = "hashes"
	checkpointsName = "checkpoints"
	anchorName      = "begin"
	lockName        = "lock"
	runsName        = "runs"
	linkedName      = "linked"
)

// Log is a log that this process writes. Its methods may be called from many goroutines.
type Log struct {
	dir     string
	options Options
	lock    *os.File

	urgent chan struct{} // a caller waits for a commit
	lazy   chan struct{} // entries wait that no caller waits for
	ended  chan struct{} // the writer has ended

	mu        sync.Mutex // guards the following, and writes of the unwritten count to head
	orders    []order
	enqueued  int               // entries of orders, and of those being written, that no caller waits for
	unwritten uint64            // how many entries are lost if the process dies now, as head has it
	leftOut   uint64            // entries that floods count
	floods    map[string]*flood // by principal and run
	closed    bool
	failure   error // the file's state is not known any more: nothing is written

	w writer // of the one goroutine that writes, but for durable
}

// Open makes or continues the log in dir, recovers what a killed writer left, and holds the
// log until Close. The error is of KindBusy if another process has it, and a *Problem if it
// is damaged.
func Open(dir string, options Options) (*Log, error) {
	options, err := options.filled()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := hold(dir)
	if err != nil {
		return nil, err
	}
	l := &Log{dir: dir, options: options, lock: lock, urgent: make(chan struct{}, 1), lazy: make(chan struct{}, 1), ended: make(chan struct{}), floods: map[string]*flood{}}
	l.w = writer{dir: dir, options: options}
	gap, err := l.w.open()
	if err != nil {
		return nil, errors.Join(err, l.w.close(), lock.Close())
	}
	if gap != nil {
		l.unwritten = order{entries: []Entry{*gap}}.lost()
	}
	l.w.durable.Store(l.w.tip.tree.size)
	go l.write()
	if gap == nil {
		return l, nil
	}
	if err := l.appendGap(*gap); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// appendGap writes a gap, on a full disk as soon as there is space: until then head counts
// what it stands for.
func (l *Log) appendGap(gap Entry) error {
	_, err := l.AppendEnd(gap)
	if !errors.Is(err, ErrStorage) {
		return err
	}
	o := order{entries: stamped([]Entry{gap}), end: true}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.usable(); err != nil {
		return err
	}
	if err := l.miss(o.lost()); err != nil {
		return err
	}
	l.enqueued++
	l.orders = append(l.orders, o)
	return nil
}

// A process that is killed while it starts another leaves that with a copy of the lock, for
// the moment between fork and exec. On a busy machine that is longer than a second.
const (
	lockPatience = 5 * time.Second
	lockPoll     = 5 * time.Millisecond
)

// hold takes the log's lock, which a killed process leaves free.
func hold(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	err = descriptor.LockWithin(ctx, file, unix.LOCK_EX)
	if errors.Is(err, context.DeadlineExceeded) {
		err = &agent.Error{Kind: agent.KindBusy, Step: step, Message: "another process writes the log " + dir}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// State is how a log stands.
type State struct {
	Records uint64 // the number of the last one
	Waiting uint64 // entries in memory only
}

// State returns how the log stands. What Append has returned counts.
func (l *Log) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return State{Records: l.w.durable.Load(), Waiting: l.unwritten}
}

// Close writes what waits and a checkpoint, marks the log as closed, and releases it. A second
// call does nothing.
func (l *Log) Close() error {
	l.mu.Lock()
	already := l.closed
	for _, f := range l.floods {
		l.endFlood(f)
	}
	l.closed = true
	l.mu.Unlock()
	signal(l.urgent)
	<-l.ended
	if already {
		return nil
	}
	l.mu.Lock()
	err := l.failure
	if err == nil && l.unwritten > 0 {
		err = fmt.Errorf("%w: %d entries could not be written", ErrStorage, l.unwritten)
	}
	l.mu.Unlock()
	if err == nil {
		err = l.w.finish()
	}
	return errors.Join(err, l.w.close(), l.lock.Close())
}

func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default: // it was signalled, and has not looked yet
	}
}
