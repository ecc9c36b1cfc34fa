package logs

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"clove.run/clove/api"
)

// Names in a log's directory.
const (
	newer    = "log"
	older    = "log.1"
	prepared = "log.new" // becomes the newer one when that is full
)

// DefaultCap bounds a run's log where nothing else is asked for.
const DefaultCap = 64 << 20

// Of clove's own word in a log.
const streamClove = "clove"

// entry is a line of the file. Head marks the first one of a file, whose
// counts are of everything that was dropped before the older file.
type entry struct {
	api.LogLine
	Head bool `json:"head,omitempty"`
}

// count is a number of lines, and of the bytes of output in them.
type count struct{ lines, bytes int64 }

func (c *count) add(o count) { c.lines, c.bytes = c.lines+o.lines, c.bytes+o.bytes }

// weight is what an entry stands for: its line, or the lines that it says are
// missing. So whoever adds up a log knows how much there ever was of it.
func (e entry) weight() count {
	switch {
	case e.Head:
		return count{}
	case e.LostLines > 0:
		return count{e.LostLines, e.LostBytes}
	}
	return count{1, int64(len(e.Content()))}
}

// Log is the log of one run, opened for writing by its one supervisor.
type Log struct {
	dir  string
	half int64 // bytes of one file

	mu       sync.Mutex // guards all below
	file     *os.File
	size     int64 // of the newer file
	now      count // in the newer file
	previous count // in the older file
	lost     count // before the older file
	dropped  count // by failed writes, and not yet told
}

// Open makes or continues the log in dir, which is made. capBytes bounds both
// files together.
func Open(dir string, capBytes int64) (*Log, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	l := &Log{dir: dir, half: capBytes / 2}
	err := l.mend()
	if err != nil {
		return nil, err
	}
	if l.previous, _, err = tally(filepath.Join(dir, older)); err != nil {
		return nil, err
	}
	if l.now, l.lost, err = tally(filepath.Join(dir, newer)); err != nil {
		return nil, err
	}
	if l.file, err = os.OpenFile(filepath.Join(dir, newer), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return nil, err
	}
	info, err := l.file.Stat()
	if err != nil {
		l.file.Close()
		return nil, err
	}
	if l.size = info.Size(); l.size > 0 {
		// A supervisor that was killed may have left half a line.
		n, _ := l.file.Write([]byte("\n"))
		l.size += int64(n)
	}
	return l, nil
}

// mend ends a rotation that a kill cut between its two renames: the newer file
// is prepared, and has the count that would be lost otherwise.
func (l *Log) mend() error {
	_, err := os.Lstat(filepath.Join(l.dir, newer))
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err = os.Rename(filepath.Join(l.dir, prepared), filepath.Join(l.dir, newer))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the first start
	}
	return err
}

// Close ends the log.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}

// write adds one line. It never fails: what cannot be written is counted.
func (l *Log) write(line api.LogLine) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := entry{LogLine: line}.weight()
	if l.dropped.lines > 0 {
		told := api.LogLine{Time: line.Time, Stream: streamClove, LostLines: l.dropped.lines, LostBytes: l.dropped.bytes}
		if l.append(entry{LogLine: told}) != nil {
			l.dropped.add(own)
			return
		}
		l.now.add(l.dropped)
		l.dropped = count{}
	}
	if l.append(entry{LogLine: line}) != nil {
		l.dropped.add(own)
		return
	}
	l.now.add(own)
}

// append writes one entry, in a new file when the old one is full.
func (l *Log) append(e entry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if l.size > 0 && l.size+int64(len(text)) > l.half {
		if err := l.rotate(e.Time); err != nil {
			return err
		}
	}
	n, err := l.file.Write(text)
	l.size += int64(n)
	if err != nil && n > 0 {
		// Half a line would swallow the next one.
		if l.file.Truncate(l.size-int64(n)) == nil {
			l.size -= int64(n)
		}
	}
	return err
}

// rotate drops the older file, whose lines are lost, and begins a newer one.
func (l *Log) rotate(now time.Time) error {
	lost := l.lost
	lost.add(l.previous)
	file, size, err := l.prepare(entry{Head: true, LogLine: api.LogLine{Time: now, Stream: streamClove, LostLines: lost.lines, LostBytes: lost.bytes}})
	if err != nil {
		return err
	}
	path := func(name string) string { return filepath.Join(l.dir, name) }
	if err := os.Rename(path(newer), path(older)); err != nil {
		return errors.Join(err, file.Close())
	}
	if err := os.Rename(path(prepared), path(newer)); err != nil {
		// What was the older file is gone; what is written to keeps its name.
		l.lost, l.previous = lost, count{}
		return errors.Join(err, os.Rename(path(older), path(newer)), file.Close())
	}
	l.file.Close()
	l.file, l.size, l.lost, l.previous, l.now = file, size, lost, l.now, count{}
	return nil
}

// prepare makes the file that will be the newer one, with its head.
func (l *Log) prepare(head entry) (*os.File, int64, error) {
	text, err := json.Marshal(head)
	if err != nil {
		return nil, 0, err
	}
	file, err := os.OpenFile(filepath.Join(l.dir, prepared), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return nil, 0, err
	}
	if _, err := file.Write(append(text, '\n')); err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, int64(len(text) + 1), nil
}

// tally counts the lines of a file, and reads what its head says was lost.
func tally(path string) (own, lost count, err error) {
	file, err := openIfThere(path)
	if file == nil {
		return own, lost, err
	}
	defer file.Close()
	err = scan(file, func(e entry) error {
		if e.Head {
			lost = count{e.LostLines, e.LostBytes}
		}
		own.add(e.weight())
		return nil
	})
	return own, lost, err
}
