package logs

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"

	"clove.run/clove/api"
)

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
		if err := r.drain(r.take); err != nil {
			return err
		}
		moved, err := r.moved()
		if err != nil || !moved {
			return err
		}
		// Nothing is written to the old one any more: this is its end.
		if err := r.drain(r.take); err != nil {
			return err
		}
		if err := r.begin(r.take); err != nil || r.file == nil {
			return err
		}
	}
}

// moved tells whether another file has the newer one's name.
func (r *reader) moved() (bool, error) {
	if r.file == nil {
		return true, nil
	}
	same, err := isNamed(r.file, r.path(newer))
	return !same && err == nil, ignoreMissing(err)
}

// begin opens the newer file, and gives what lies between it and the last line
// that was seen: first how much of it is gone, then the rest of the older file.
// More than one rotation may have passed since the last look.
func (r *reader) begin(collect func(api.LogLine) error) error {
	for {
		file, err := openIfThere(r.path(newer))
		if err != nil {
			return err
		}
		before, err := openIfThere(r.path(older))
		if err != nil {
			closeAll(file)
			return err
		}
		// A rotation in between would make a pair of files that are not neighbours.
		if file != nil {
			if same, err := isNamed(file, r.path(newer)); !same || err != nil {
				closeAll(file, before)
				if ignoreMissing(err) != nil {
					return err
				}
				continue
			}
		}
		err = r.between(file, before, collect)
		closeAll(before)
		r.close()
		if r.file = file; file != nil {
			r.lines, r.half = bufio.NewReaderSize(file, 64<<10), nil
		}
		return err
	}
}

// between gives what was not seen of the older file, and what was lost before it.
func (r *reader) between(file, before *os.File, collect func(api.LogLine) error) error {
	head := entry{}
	if file != nil {
		head = headOf(file)
	}
	at := count{head.LostLines, head.LostBytes} // where the older file begins
	if gone := (count{at.lines - r.seen.lines, at.bytes - r.seen.bytes}); gone.lines > 0 {
		r.seen = at
		mark := head.LogLine
		mark.LostLines, mark.LostBytes = gone.lines, gone.bytes
		if err := collect(mark); err != nil {
			return err
		}
	}
	if before == nil || r.file != nil && sameFile(before, r.file) {
		return nil // it was read to its end
	}
	return scan(before, func(e entry) error {
		at.add(e.weight())
		if e.Head || at.lines <= r.seen.lines {
			return nil
		}
		r.seen = at
		return collect(e.LogLine)
	})
}

// headOf reads the first line of a newer file without moving in it. The first
// file of a log has none, and nothing was lost before it.
func headOf(file *os.File) (e entry) {
	line, err := bufio.NewReader(io.NewSectionReader(file, 0, 1<<20)).ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &e) != nil || !e.Head {
		return entry{}
	}
	return e
}

// isNamed tells whether path is the open file.
func isNamed(file *os.File, path string) (bool, error) {
	named, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	own, err := file.Stat()
	return err == nil && os.SameFile(named, own), err
}

func sameFile(a, b *os.File) bool {
	one, err := a.Stat()
	if err != nil {
		return false
	}
	other, err := b.Stat()
	return err == nil && os.SameFile(one, other)
}

// ignoreMissing: between its two renames a rotation leaves no newer file.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}
