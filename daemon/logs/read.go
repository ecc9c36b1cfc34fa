package logs

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"clove.run/clove/api"
	"clove.run/clove/internal/watch"
)

// Choice says which lines are wanted.
type Choice struct {
	Since time.Time
	// After is the number of the last line that the caller has; it gets later
	// ones, and a mark where some of those are gone. Offset is that line's,
	// which is needed to say how many bytes are gone; nil: not known.
	After  int64
	Offset *int64
	Tail   int // the last so many of the lines that are there; below 0: all
	// Ended, where it is not nil, asks to go on with new lines until it is
	// closed and the lines that were written by then are read.
	Ended <-chan struct{}
	// Watch begins to watch a directory; nil: watch.Dir.
	Watch func(dir string) (*watch.Watcher, error)
	// Pause is called whenever all that is there was emitted; nil: it is not called.
	Pause func() error
}

// Read gives the chosen lines of the log in dir to emit, until there are no
// more, ctx ends, or emit fails. A run that never wrote has no lines.
func Read(ctx context.Context, dir string, choice Choice, emit func(api.LogLine) error) error {
	r := &reader{dir: dir, choice: choice, emit: emit, seen: count{lines: max(0, choice.After)}}
	if choice.Offset != nil {
		r.seen.bytes = *choice.Offset
	} else {
		r.unsure = r.seen.lines > 0
	}
	if choice.Ended != nil {
		// Before the past is read: a line that is written meanwhile causes another look.
		watcher, err := r.watch(ctx)
		if err != nil {
			return err
		}
		if watcher != nil {
			defer watcher.Close()
			r.changed = watcher.Changed
		}
	}
	defer r.close()
	if err := r.past(); err != nil || r.changed == nil {
		return err
	}
	return r.follow(ctx)
}

// reader reads the newer file on, whatever becomes of its name.
type reader struct {
	dir     string
	choice  Choice
	emit    func(api.LogLine) error
	changed <-chan struct{}

	file    *os.File // the newer one; nil: there is none yet
	lines   *bufio.Reader
	half    []byte        // a line whose end is not yet written
	at      count         // of the log since its first line, up to where it is read
	seen    count         // up to where the caller has the lines
	unsure  bool          // the bytes of seen are not known
	waiting []api.LogLine // the last ones, until all of the past is read
}

// watch watches the log's directory, and waits until a run that has not begun
// has one; nil: it ended before. A reader does not make the directory: after the run
// was removed it would stay for ever.
func (r *reader) watch(ctx context.Context) (*watch.Watcher, error) {
	begin := r.choice.Watch
	if begin == nil {
		begin = watch.Dir
	}
	watcher, err := begin(r.dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return watcher, err
	}
	r.choice.Tail = -1 // whatever will be there is new
	parent := filepath.Dir(r.dir)
	// The directory of all logs, which a new installation does not have yet. It is not a
	// run's, so it may stay.
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, err
	}
	above, err := begin(parent)
	if err != nil {
		return nil, err
	}
	defer above.Close()
	for {
		watcher, err := begin(r.dir)
		if !errors.Is(err, fs.ErrNotExist) {
			return watcher, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-r.choice.Ended:
			return nil, nil
		case <-above.Changed:
		}
	}
}

// past gives what is there.
func (r *reader) past() error {
	collect := r.take
	if r.choice.Tail >= 0 {
		collect = r.keep
	}
	begun, err := r.beginAtTail()
	if err == nil && !begun {
		err = r.begin(collect)
	}
	if err != nil {
		return err
	}
	if err := r.drain(collect); err != nil {
		return err
	}
	if err := r.release(); err != nil {
		return err
	}
	return r.pause()
}

// pause reports that all that is there was given, so that a caller who gathers lines sends
// them.
func (r *reader) pause() error {
	if r.choice.Pause == nil {
		return nil
	}
	return r.choice.Pause()
}

// keep holds the last lines back until all of the past is read: which ones are the last is
// known only then.
func (r *reader) keep(line api.LogLine) error {
	if line.Time.Before(r.choice.Since) {
		return nil
	}
	// Cut now and then, so that a long past costs neither memory nor much time.
	if r.waiting = append(r.waiting, line); len(r.waiting) > 2*r.choice.Tail+16 {
		r.waiting = append(r.waiting[:0], r.waiting[len(r.waiting)-r.choice.Tail:]...)
	}
	return nil
}

// release gives the lines that keep held back.
func (r *reader) release() error {
	for _, line := range r.waiting[max(0, len(r.waiting)-max(0, r.choice.Tail)):] {
		if err := r.emit(line); err != nil {
			return err
		}
	}
	r.waiting = nil
	return nil
}

// take gives a line at once, unless it is too old.
func (r *reader) take(line api.LogLine) error {
	if line.Time.Before(r.choice.Since) {
		return nil
	}
	return r.emit(line)
}

// drain gives every whole line that is left in the newer file.
func (r *reader) drain(collect func(api.LogLine) error) error {
	if r.file == nil {
		return nil
	}
	return scanWhole(r.lines, &r.half, func(e entry) error { return r.pass(e, collect) })
}

// pass goes over one entry, and gives it if the caller has not got it. While seen is ahead
// of at, these are lines that the caller has; then the two go together.
func (r *reader) pass(e entry, collect func(api.LogLine) error) error {
	if e.Head {
		return nil
	}
	if r.seen.lines <= r.at.lines {
		r.seen, r.unsure = r.at, false
	}
	r.at.add(e.weight())
	if r.at.lines <= r.seen.lines {
		return nil
	}
	if e.LostLines > 0 {
		return r.miss(e.LogLine, collect)
	}
	r.seen, r.unsure = r.at, false
	e.Number, e.Offset = r.at.lines, r.at.bytes
	return collect(e.LogLine)
}

// miss gives a mark for what lies between the caller's last line and here.
func (r *reader) miss(mark api.LogLine, collect func(api.LogLine) error) error {
	mark.LostLines, mark.LostBytes = r.at.lines-r.seen.lines, max(0, r.at.bytes-r.seen.bytes)
	if r.unsure {
		mark.LostBytes = 0 // rather none than a wrong one
	}
	mark.Number, mark.Offset = 0, 0
	r.seen, r.unsure = r.at, false
	return collect(mark)
}

// close closes the newer file; the older one is never kept open.
func (r *reader) close() {
	if r.file != nil {
		r.file.Close()
		r.file = nil
	}
}

func (r *reader) path(name string) string { return filepath.Join(r.dir, name) }
