package logs

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
	"unicode/utf8"

	"clove.run/clove/api"
)

// Names in a log's directory.
const (
	newer = "log"
	older = "log.1"
)

// DefaultCap bounds a run's log where nothing else is asked for.
const DefaultCap = 64 << 20

// maxLine is docker's: longer lines are cut.
const maxLine = 16 << 10

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
	var err error
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
	own := count{1, int64(len(line.Content()))}
	if l.dropped.lines > 0 {
		told := api.LogLine{Time: line.Time, Stream: streamClove, LostLines: l.dropped.lines, LostBytes: l.dropped.bytes}
		if l.append(entry{LogLine: told}) != nil {
			l.dropped.add(own)
			return
		}
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
	l.lost.add(l.previous)
	head, err := json.Marshal(entry{Head: true,
		LogLine: api.LogLine{Time: now, Stream: streamClove, LostLines: l.lost.lines, LostBytes: l.lost.bytes}})
	if err != nil {
		return err
	}
	temporary := filepath.Join(l.dir, newer+".new")
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err == nil {
		_, err = file.Write(append(head, '\n'))
	}
	if err == nil {
		err = os.Rename(filepath.Join(l.dir, newer), filepath.Join(l.dir, older))
	}
	if err == nil {
		err = os.Rename(temporary, filepath.Join(l.dir, newer))
	}
	if err != nil {
		l.lost.lines, l.lost.bytes = l.lost.lines-l.previous.lines, l.lost.bytes-l.previous.bytes
		return errors.Join(err, file.Close())
	}
	l.file.Close()
	l.file, l.size, l.previous, l.now = file, int64(len(head)+1), l.now, count{}
	return nil
}

// tally counts the lines of a file, and reads what its head says was lost.
func tally(path string) (own, lost count, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return own, lost, nil
	}
	if err != nil {
		return own, lost, err
	}
	defer file.Close()
	err = scan(file, func(e entry) error {
		switch {
		case e.Head:
			lost = count{e.LostLines, e.LostBytes}
		case e.LostLines == 0:
			own.add(count{1, int64(len(e.Content()))})
		}
		return nil
	})
	return own, lost, err
}

// Lines is an io.Writer that makes lines of what one stream says.
type Lines struct {
	log     *Log
	stream  string
	pending []byte
}

// Stream returns the writer of one stream; it is for one goroutine.
func (l *Log) Stream(name string) *Lines { return &Lines{log: l, stream: name} }

// Write never fails.
func (s *Lines) Write(output []byte) (int, error) {
	length := len(output)
	for len(output) > 0 {
		end := bytes.IndexByte(output, '\n')
		room := maxLine - len(s.pending)
		switch {
		case end >= 0 && end <= room:
			s.emit(output[:end], false)
			output = output[end+1:]
		case len(output) > room:
			s.emit(output[:room], true)
			output = output[room:]
		default:
			s.pending = append(s.pending, output...)
			output = nil
		}
	}
	return length, nil
}

// Close writes a last line that has no end.
func (s *Lines) Close() error {
	if len(s.pending) > 0 {
		s.emit(nil, true)
	}
	return nil
}

func (s *Lines) emit(rest []byte, partial bool) {
	content := append(s.pending, rest...)
	line := api.LogLine{Time: time.Now().UTC(), Stream: s.stream, Partial: partial}
	if utf8.Valid(content) {
		line.Text = string(content)
	} else {
		line.Bytes = content
	}
	s.log.write(line)
	s.pending = s.pending[:0]
}
