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
	Tail  int // the last so many of what is there; below 0: all
	// Ended, where it is not nil, asks to go on with new lines until it is
	// closed and what was written by then is read.
	Ended <-chan struct{}
}

// Read gives the chosen lines of the log in dir to emit, until there are no
// more, ctx ends, or emit fails. A run that never wrote has no lines.
func Read(ctx context.Context, dir string, choice Choice, emit func(api.LogLine) error) error {
	r := &reader{dir: dir, choice: choice, emit: emit}
	if choice.Ended != nil {
		// A run that has not written yet: only a directory can be watched.
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

	file    *os.File // the newer one; nil: there is none yet
	lines   *bufio.Reader
	half    []byte        // a line whose end is not yet written
	seen    count         // of the log since its first line, told or lost
	waiting []api.LogLine // the last ones, until all of the past is read
}

// past gives what is there.
func (r *reader) past() error {
	collect := r.take
	if r.choice.Tail >= 0 {
		collect = r.keep
	}
	if err := r.begin(collect); err != nil {
		return err
	}
	if err := r.drain(collect); err != nil {
		return err
	}
	return r.release()
}

// keep holds the last lines back until all of the past is read.
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
		r.seen.add(e.weight())
		if err := collect(e.LogLine); err != nil {
			return err
		}
	}
}

func (r *reader) close() {
	if r.file != nil {
		r.file.Close()
		r.file = nil
	}
}

func (r *reader) path(name string) string { return filepath.Join(r.dir, name) }

// openIfThere returns nil for a file that does not exist.
func openIfThere(path string) (*os.File, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return file, err
}

// scan gives every entry of a file; what is no entry is passed over.
func scan(from io.Reader, each func(entry) error) error {
	lines := bufio.NewReaderSize(from, 64<<10)
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
