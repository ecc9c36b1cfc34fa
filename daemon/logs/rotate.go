package logs

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"time"

	"clove.run/clove/api"
)

// rotate drops the older file, whose lines are lost, and begins a newer one.
// A rotation that fails in the middle is tried again by the next entry.
func (l *Log) rotate(now time.Time) error {
	if l.next == nil {
		if err := l.retire(now); err != nil {
			return err
		}
	}
	if err := os.Rename(l.path(prepared), l.path(newer)); err != nil {
		return err
	}
	size, torn, err := ending(l.next)
	if err != nil {
		return err
	}
	l.file.Close()
	l.file, l.next, l.size, l.torn, l.placed = l.next, nil, size, torn, 0
	return nil
}

// retire makes the newer file the older one, when all is there for the next.
func (l *Log) retire(now time.Time) error {
	if err := l.finishLine(); err != nil {
		return err
	}
	// The lines that are lost then, but not stored yet: a rename that fails leaves the
	// counts as they were.
	lost := l.lost
	lost.add(l.previous)
	next, err := l.prepare(entry{Head: true, LogLine: api.LogLine{Time: now, Stream: api.StreamClove, LostLines: lost.lines, LostBytes: lost.bytes}})
	if err != nil {
		return err
	}
	if err := os.Rename(l.path(newer), l.path(older)); err != nil {
		return errors.Join(err, next.Close())
	}
	l.next, l.lost, l.previous, l.now = next, lost, l.now, count{}
	return nil
}

// prepare makes the file that will be the newer one, with its head. It begins anew with
// what an attempt that failed has left.
func (l *Log) prepare(head entry) (*os.File, error) {
	text, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(l.path(prepared), os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	if _, err := file.Write(append(text, '\n')); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// mend ends a rotation that a kill cut between its two renames: the newer file
// is prepared, and has the count that would be lost otherwise.
func (l *Log) mend() error {
	_, err := os.Lstat(l.path(newer))
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err = os.Rename(l.path(prepared), l.path(newer))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the first start
	}
	return err
}
