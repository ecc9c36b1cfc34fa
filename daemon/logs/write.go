package logs

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"clove.run/clove/api"
)

// Log is the log of one run, opened for writing by its one supervisor.
type Log struct {
	dir  string
	half int64 // bytes of one file

	mu       sync.Mutex // guards all below
	file     *os.File
	next     *os.File // prepared, and waits for its name; nil but in a rotation
	size     int64    // of the newer file
	torn     bool     // the file ends in the middle of an entry
	placed   int64    // where the newer file's last place or head is
	now      count    // in the newer file
	previous count    // in the older file
	lost     count    // before the older file
	dropped  count    // by failed writes, and not in a mark yet; numbered all the same
}

// Open makes or continues the log in dir, which is made. capBytes bounds both
// files together.
func Open(dir string, capBytes int64) (l *Log, err error) {
	// Another process may remove the run, and dir with it, before openOnce has opened
	// its file there. Then the log is made again: the start fails later, when the store
	// reports that the run is gone.
	for range 100 { // far more removals than can happen
		if l, err = openOnce(dir, capBytes); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return l, err
}

func openOnce(dir string, capBytes int64) (*Log, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	l := &Log{dir: dir, half: capBytes / 2}
	// First: the names must be right before the lines behind them are counted.
	err := l.mend()
	if err != nil {
		return nil, err
	}
	// The head of the older file is not needed: that of the newer one counts all that was
	// dropped since.
	if l.previous, _, err = tally(l.path(older)); err != nil {
		return nil, err
	}
	if l.now, l.lost, err = tally(l.path(newer)); err != nil {
		return nil, err
	}
	if l.file, err = os.OpenFile(l.path(newer), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return nil, err
	}
	if l.size, l.torn, err = ending(l.file); err != nil {
		return nil, errors.Join(err, l.file.Close())
	}
	return l, nil
}

// ending returns the length of a file, and whether its last line has no end: a killed
// supervisor may have left half of one.
func ending(file *os.File) (size int64, torn bool, err error) {
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return 0, false, err
	}
	last := make([]byte, 1)
	if _, err := file.ReadAt(last, info.Size()-1); err != nil && !errors.Is(err, io.EOF) {
		return 0, false, err
	}
	return info.Size(), last[0] != '\n', nil
}

func (l *Log) path(name string) string { return filepath.Join(l.dir, name) }

// Close ends the log. It writes the mark for what was refused and has none yet.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mark(time.Now().UTC())
	closeAll(l.next)
	return l.file.Close()
}

// write adds one line. It never fails: a line that cannot be written is counted.
func (l *Log) write(line api.LogLine) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := entry{LogLine: line}
	if !l.mark(line.Time) || l.append(e) != nil {
		l.dropped.add(e.weight())
	}
}

// mark writes an entry for what failed writes dropped; it is false while it cannot.
func (l *Log) mark(now time.Time) bool {
	if l.dropped.lines == 0 {
		return true
	}
	line := api.LogLine{Time: now, Stream: api.StreamClove, LostLines: l.dropped.lines, LostBytes: l.dropped.bytes}
	if l.append(entry{LogLine: line}) != nil {
		return false
	}
	l.dropped = count{}
	return true
}

// append writes one entry, in a new file when the old one is full.
func (l *Log) append(e entry) error {
	text, err := e.AppendJSON(nil) // neither head nor place
	if err != nil {
		return err
	}
	text = append(text, '\n')
	// A rotation that failed half way is tried again by each entry. Behind a rotation the
	// entry is written, however long it is.
	if l.next != nil || l.size > 0 && l.size+int64(len(text)) > l.half {
		if err := l.rotate(e.Time); err != nil {
			return err
		}
	}
	if err := l.finishLine(); err != nil {
		return err
	}
	l.place(e.Time, int64(len(text)))
	n, err := l.put(text)
	// But for its end it is there: it counts, and gets its end before the next one.
	if n < len(text)-1 {
		return err
	}
	l.now.add(e.weight())
	return nil
}

// placeEvery is the distance between places, in bytes. A reader of the last lines reads
// back to one.
const placeEvery = 64 << 10

// place writes a place before an entry of next bytes, where one is due and has room.
// Readers can do without it: they begin earlier.
func (l *Log) place(now time.Time, next int64) {
	if l.size-l.placed < placeEvery {
		return
	}
	before := l.lost
	before.add(l.previous)
	before.add(l.now)
	text, err := json.Marshal(entry{Head: true, Place: true, LogLine: api.LogLine{Time: now, Stream: api.StreamClove, LostLines: before.lines, LostBytes: before.bytes}})
	if err != nil || l.size+int64(len(text))+1+next > l.half {
		return
	}
	if _, err := l.put(append(text, '\n')); err == nil {
		l.placed = l.size
	}
	_ = l.finishLine() // the entry behind it fails likewise, and is counted
}

// finishLine ends half an entry, so that it does not swallow the next one. It
// is not cut off: a follower may have read it already.
func (l *Log) finishLine() error {
	if !l.torn {
		return nil
	}
	_, err := l.put([]byte{'\n'})
	return err
}

// put writes to the newer file and notes how it ends then. It does not sync, which would
// wait for the disk (doc.go).
func (l *Log) put(text []byte) (int, error) {
	n, err := l.file.Write(text)
	if n > 0 {
		l.size += int64(n)
		l.torn = text[n-1] != '\n'
	}
	return n, err
}
