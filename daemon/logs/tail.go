package logs

import (
	"bufio"
	"errors"
	"io"
	"os"
)

// tailWindow is how much of a file's end is looked at first, in bytes: places are
// placeEvery apart.
const tailWindow = 3 * placeEvery

// beginAtTail goes to a place with enough lines behind it, instead of to the log's
// beginning. begun is false where there is none: a short log, or one without places.
func (r *reader) beginAtTail() (begun bool, err error) {
	if r.choice.Tail < 0 || !r.choice.Since.IsZero() || r.seen.lines > 0 {
		return false, nil // when a line was written says nothing of where it stands
	}
	file, before, err := r.openBoth()
	if err != nil || file == nil {
		closeAll(before)
		return false, err
	}
	defer closeAll(before)
	at, have, err := findPosition(file, r.choice.Tail)
	if err == nil && at == nil && before != nil {
		var inOlder *filePosition
		if inOlder, _, err = findPosition(before, r.choice.Tail-have); err == nil && inOlder != nil {
			r.at, r.seen = inOlder.before, inOlder.before
			if _, err = before.Seek(inOlder.behind, io.SeekStart); err == nil {
				err = scan(before, func(e entry) error { return r.pass(e, r.keep) })
			}
			// The newer file then begins where the older one has ended.
			at = &filePosition{before: r.at}
		}
	}
	if err != nil || at == nil {
		file.Close()
		return false, err
	}
	r.at, r.seen = at.before, at.before
	r.file, r.half = file, nil
	r.lines = bufio.NewReaderSize(file, 64<<10)
	_, err = file.Seek(at.behind, io.SeekStart)
	return true, err
}

// filePosition is one in a file.
type filePosition struct {
	behind int64 // where its entry ends, in bytes
	before count // of the log
}

// findPosition returns the last place with so many lines behind it; nil: there is none, and
// the file has have lines.
func findPosition(file *os.File, lines int) (at *filePosition, have int, err error) {
	info, err := file.Stat()
	if err != nil {
		return nil, 0, err
	}
	for window := int64(tailWindow); ; window *= 2 {
		from := max(0, info.Size()-window)
		at, have, err = placeIn(io.NewSectionReader(file, from, info.Size()-from), from, lines)
		if at != nil || err != nil || from == 0 {
			return at, have, err
		}
	}
}

// placeIn is findPosition in a part of a file that begins at an offset.
func placeIn(part io.Reader, offset int64, lines int) (at *filePosition, have int, err error) {
	type found struct {
		filePosition
		have int // entries before it
	}
	var places []found
	reader := bufio.NewReaderSize(part, 64<<10)
	var half []byte
	for first := offset > 0; ; first = false {
		text, err := nextLine(reader, &half)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, 0, err
		}
		offset += int64(len(text))
		half = half[:0]
		if err != nil {
			break // what has no end is not given
		}
		e, ok := parse(text)
		switch {
		case first || !ok: // it may be the end of a line
		case e.Place:
			places = append(places, found{filePosition{offset, count{e.LostLines, e.LostBytes}}, have})
		case !e.Head:
			have++
		}
	}
	// The last one that is far enough from the end: the least to read.
	for i := len(places) - 1; i >= 0; i-- {
		if have-places[i].have >= lines {
			return &places[i].filePosition, have, nil
		}
	}
	return nil, have, nil
}
