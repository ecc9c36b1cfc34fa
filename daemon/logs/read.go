package logs

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
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
	After int64 // lines with a higher number than that
	Tail  int   // the last so many; below 0: all
	// Ended, where it is not nil, asks to go on with new lines until it is
	// closed and what was written by then is read.
	Ended <-chan struct{}
}

// Read gives the chosen lines of the log in dir to emit, until there are no
// more, ctx ends, or emit fails. A run that never wrote has no lines.
func Read(ctx context.Context, dir string, choice Choice, emit func(api.LogLine) error) error {
	r := &reader{dir: dir, choice: choice, emit: emit}
	if choice.Ended != nil {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		watcher, err := watch.Dir(dir)
		if err != nil {
			return err
		}
		defer watcher.Close()
		r.changed = watcher.Changed
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

	number  int64    // of the last line that was read
	before  *os.File // the older file that belongs to file; nil: there is none
	file    *os.File
	lines   *bufio.Reader
	half    []byte // a line whose end is not yet written
	waiting []api.LogLine
}

// past gives what is there, the older file first.
func (r *reader) past() error {
	if err := r.openBoth(); err != nil {
		return err
	}
	if r.before != nil {
		defer r.before.Close()
	}
	collect := r.take
	if r.choice.Tail >= 0 {
		collect = r.keep
	}
	head := entry{}
	if r.file != nil {
		head = r.head()
	}
	r.number = head.LostLines
	if head.LostLines > r.choice.After {
		if err := collect(head.LogLine); err != nil {
			return err
		}
	}
	if r.before != nil {
		err := scan(r.before, func(e entry) error {
			if e.Head {
				return nil
			}
			return collect(r.numbered(e))
		})
		if err != nil {
			return err
		}
	}
	if err := r.drain(collect); err != nil {
		return err
	}
	return r.release()
}

// openBoth opens the two files as they belong together. The newer one is
// opened first and must have its name still when the older one is open: a
// rotation takes that name away before it gives the older one to another.
func (r *reader) openBoth() error {
	for {
		if err := r.open(); err != nil {
			return err
		}
		before, err := os.Open(filepath.Join(r.dir, older))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		r.before = nil
		if err == nil {
			r.before = before
		}
		named, err := os.Stat(filepath.Join(r.dir, newer))
		if r.file == nil && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && r.file != nil {
			if own, err := r.file.Stat(); err == nil && os.SameFile(named, own) {
				return nil
			}
		}
		if r.before != nil {
			r.before.Close()
		}
	}
}

// numbered gives a line of output its number.
func (r *reader) numbered(e entry) api.LogLine {
	if e.LostLines == 0 {
		r.number++
		e.Number = r.number
	}
	return e.LogLine
}

// wanted tells whether a line is chosen, but for the tail.
func (r *reader) wanted(line api.LogLine) bool {
	return !line.Time.Before(r.choice.Since) && (line.Number == 0 && r.number >= r.choice.After || line.Number > r.choice.After)
}

// keep holds the last lines back until all of the past is read.
func (r *reader) keep(line api.LogLine) error {
	if !r.wanted(line) {
		return nil
	}
	if r.waiting = append(r.waiting, line); len(r.waiting) > 2*r.choice.Tail+16 {
		r.waiting = append(r.waiting[:0], r.waiting[len(r.waiting)-r.choice.Tail:]...)
	}
	return nil
}

func (r *reader) release() error {
	for _, line := range r.waiting[max(0, len(r.waiting)-max(0, r.choice.Tail)):] {
		if err := r.emit(line); err != nil {
			return err
		}
	}
	r.waiting = nil
	return nil
}

func (r *reader) take(line api.LogLine) error {
	if !r.wanted(line) {
		return nil
	}
	return r.emit(line)
}

// follow gives new lines until the run has ended.
func (r *reader) follow(ctx context.Context) error {
	ended := r.choice.Ended
	for {
		if err := r.catchUp(); err != nil {
			return err
		}
		if ended == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.changed:
		case <-ended:
			ended = nil // one more look
		}
	}
}

// catchUp reads to the end of the file that has the name now.
func (r *reader) catchUp() error {
	for {
		if r.file != nil {
			if err := r.drain(r.take); err != nil {
				return err
			}
		}
		moved, err := r.moved()
		if err != nil || !moved {
			return err
		}
		if r.file != nil {
			// Nothing is written to it any more: this is its end.
			if err := r.drain(r.take); err != nil {
				return err
			}
		}
		if err := r.open(); err != nil || r.file == nil {
			return err
		}
	}
}

// moved tells whether another file has the newer one's name.
func (r *reader) moved() (bool, error) {
	named, err := os.Stat(filepath.Join(r.dir, newer))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || r.file == nil {
		return true, err
	}
	own, err := r.file.Stat()
	return err == nil && !os.SameFile(named, own), err
}

func (r *reader) open() error {
	r.close()
	file, err := os.Open(filepath.Join(r.dir, newer))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		r.file, r.lines, r.half = file, bufio.NewReaderSize(file, 64<<10), nil
	}
	return err
}

func (r *reader) close() {
	if r.file != nil {
		r.file.Close()
		r.file = nil
	}
}

// head reads the first line of the newer file without taking it.
func (r *reader) head() (e entry) {
	file, err := os.Open(r.file.Name())
	if err != nil {
		return e
	}
	defer file.Close()
	line, err := bufio.NewReader(file).ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &e) != nil || !e.Head || e.LostLines < 0 {
		return entry{}
	}
	return e
}

// drain gives every whole line that is left in the file.
func (r *reader) drain(collect func(api.LogLine) error) error {
	if r.file == nil {
		return nil
	}
	for {
		part, err := r.lines.ReadBytes('\n')
		r.half = append(r.half, part...)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		line := r.half
		r.half = nil
		var e entry
		if json.Unmarshal(line, &e) != nil || e.Head {
			continue // half a line that a killed supervisor left
		}
		if err := collect(r.numbered(e)); err != nil {
			return err
		}
	}
}

// scan gives every entry of one file; what is no entry is passed over.
func scan(file *os.File, each func(entry) error) error {
	lines := bufio.NewReaderSize(file, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var e entry
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		if err := each(e); err != nil {
			return err
		}
	}
}
