package logs

import (
	"bufio"
	"context"
	"errors"
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
		if err := r.pause(); err != nil {
			return err
		}
		if ended == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.changed:
		// The supervisor has written the whole log before the end is stored, so one more
		// look has it all.
		case <-ended:
			ended = nil // one more look
		}
	}
}

// catchUp reads to the end of the file that has the name now. It ends because a file that
// was replaced is never written again.
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

// moved reports whether another file has the newer one's name. Where none has
// it, the next change in the directory brings another look.
func (r *reader) moved() (bool, error) {
	if r.file == nil {
		return true, nil
	}
	same, err := isNamed(r.file, r.path(newer))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return !same, err
}

// begin opens the newer file, and gives what lies between it and the last line
// that was seen: first how much of it is gone, then the rest of the older file.
// More than one rotation may have passed since the last look.
func (r *reader) begin(collect func(api.LogLine) error) error {
	file, before, err := r.openBoth()
	if err != nil {
		return err
	}
	defer closeAll(before)
	err = r.between(file, before, collect)
	// Only now: between has compared the file that was read so far with the older one.
	r.close()
	if r.file = file; file != nil {
		r.lines, r.half = bufio.NewReaderSize(file, 64<<10), nil
	}
	return err
}

// between goes to the beginning of file, over what is lost and the older file.
func (r *reader) between(file, before *os.File, collect func(api.LogLine) error) error {
	head := entry{}
	if file != nil {
		head = headOf(file)
	}
	if before != nil && r.file != nil && sameFile(before, r.file) {
		return nil // it was read to its end
	}
	r.at = count{head.LostLines, head.LostBytes} // where the older file begins
	if r.at.lines > r.seen.lines {
		if err := r.miss(head.LogLine, collect); err != nil {
			return err
		}
	}
	if before == nil {
		return nil
	}
	return scan(before, func(e entry) error { return r.pass(e, collect) })
}

// removalLooks is how often an older file alone is looked at again: far more than the
// rotations that a reader can meet in a row.
const removalLooks = 100

// openBoth opens the two files as they belong together; each is nil where it
// does not exist. The newer one is opened first and must be the newer one still
// when the older one is open: a rotation takes its name away in the moment in
// which it gives the older one's to another file. An older file alone means that a rotation
// ended between the looks at the two names of the newer one, or that the log is being removed,
// so it is believed only when it stays so.
func (r *reader) openBoth() (file, before *os.File, err error) {
	for look := 0; ; look++ {
		file, err = r.openNewer()
		if err == nil {
			before, err = openIfThere(r.path(older))
		}
		settled := false
		if err == nil {
			settled, err = r.isNewer(file)
		}
		alone := file == nil && before != nil
		if err == nil && settled && (!alone || look >= removalLooks) {
			return file, before, nil
		}
		closeAll(file, before)
		if err != nil {
			return nil, nil, err
		}
		before = nil
	}
}

// openNewer opens the newer file: while a rotation is between its two renames,
// or for as long as one is cut there, the one that is prepared.
func (r *reader) openNewer() (*os.File, error) {
	for {
		file, err := openIfThere(r.path(newer))
		if file != nil || err != nil {
			return file, err
		}
		file, err = openIfThere(r.path(prepared))
		if file == nil || err != nil {
			return nil, err
		}
		// The next rotation may have prepared it, before its first rename.
		if _, err := os.Lstat(r.path(newer)); errors.Is(err, fs.ErrNotExist) {
			return file, nil
		}
		file.Close()
	}
}

// isNewer reports whether file is what openNewer would open now.
func (r *reader) isNewer(file *os.File) (bool, error) {
	for _, name := range []string{newer, prepared} {
		if file == nil {
			if _, err := os.Lstat(r.path(name)); !errors.Is(err, fs.ErrNotExist) {
				return false, err
			}
			continue
		}
		same, err := isNamed(file, r.path(name))
		if !errors.Is(err, fs.ErrNotExist) {
			return same, err
		}
	}
	return file == nil, nil
}

// isNamed reports whether path is the open file.
func isNamed(file *os.File, path string) (bool, error) {
	named, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	own, err := file.Stat()
	return err == nil && os.SameFile(named, own), err
}

// sameFile compares inodes: names say nothing, as each rotation changes them.
func sameFile(a, b *os.File) bool {
	one, err := a.Stat()
	if err != nil {
		return false
	}
	other, err := b.Stat()
	return err == nil && os.SameFile(one, other)
}
