package audit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// segment is one file of records.
type segment struct {
	path  string
	first uint64 // the number of its first record
}

const segmentSuffix = ".jsonl"

func segmentName(first uint64) string { return fmt.Sprintf("%020d%s", first, segmentSuffix) }

// segmentsOf lists the segments of the log in the directory at path, oldest first. A file at
// path, which Export wrote, is one segment.
func segmentsOf(path string) ([]segment, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []segment{{path, 1}}, nil
	}
	names, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var found []segment
	for _, name := range names {
		digits, is := strings.CutSuffix(name.Name(), segmentSuffix)
		first, err := strconv.ParseUint(digits, 10, 64)
		if is && err == nil && segmentName(first) == name.Name() {
			found = append(found, segment{filepath.Join(path, name.Name()), first})
		}
	}
	slices.SortFunc(found, func(a, b segment) int { return strings.Compare(a.path, b.path) })
	return found, nil
}

// position is a line of a segment.
type position struct {
	segment segment
	offset  int64
	line    []byte // without its end; valid until the next one is read
	whole   bool   // it has its end
}

// errStop ends a walk early, without an error.
var errStop = errors.New("stop")

// walk passes on every line of the segments in their order, until each fails.
func walk(segments []segment, each func(position) error) error {
	for _, s := range segments {
		err := s.walk(0, each)
		if errors.Is(err, errStop) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// walk begins at offset. A line that is too long for a record is passed on without its rest,
// as one that is not whole, and ends the walk.
func (s segment) walk(offset int64, each func(position) error) error {
	file, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewReaderSize(io.NewSectionReader(file, offset, 1<<62), lineMax)
	for {
		text, err := lines.ReadSlice('\n')
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		if len(text) == 0 {
			return nil
		}
		p := position{s, offset, text, err == nil}
		if p.whole {
			p.line = text[:len(text)-1]
		}
		if failed := each(p); failed != nil || !p.whole {
			return failed
		}
		offset += int64(len(text))
	}
}
