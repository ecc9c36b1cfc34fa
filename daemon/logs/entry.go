package logs

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"

	"clove.run/clove/api"
)

// Names in a log's directory.
const (
	newer    = "log"
	older    = "log.1"
	prepared = "log.new" // becomes the newer one when that is full
)

// entry is a line of the file. Head marks what is not output: the first entry of a file,
// which counts everything that was dropped before the older file, and the places in a
// file, which count all lines before them.
type entry struct {
	api.LogLine
	Head  bool `json:"head,omitempty"`
	Place bool `json:"place,omitempty"`
}

// count is a number of lines, and of the bytes of output in them.
type count struct{ lines, bytes int64 }

func (c *count) add(o count) { c.lines, c.bytes = c.lines+o.lines, c.bytes+o.bytes }

// weight is what an entry counts for: its line, or the lines that it says are missing.
// The sum over a log is all output that there ever was.
func (e entry) weight() count {
	switch {
	case e.Head:
		return count{}
	case e.LostLines > 0:
		return count{e.LostLines, e.LostBytes}
	}
	return count{1, int64(len(e.Content()))}
}

// believable bounds the counts of an entry: no log can have so many lines or bytes, and
// sums of such counts do not overflow. A larger one was not written by clove.
const believable = 1 << 48

// parse reads one line of a file; ok is false for what clove did not write whole. Heads and
// places are no lines of api.LogLine's form, so they come by the slow way; there are few.
func parse(text []byte) (e entry, ok bool) {
	line, rest, whole := api.ParseLogLine(text)
	if whole && (len(rest) == 0 || string(rest) == "\n") {
		e.LogLine = line
	} else if json.Unmarshal(text, &e) != nil {
		return entry{}, false
	}
	if e.Stream == "" {
		return entry{}, false
	}
	ok = e.LostLines >= 0 && e.LostLines < believable && e.LostBytes >= 0 && e.LostBytes < believable
	return e, ok
}

// scan passes on every entry of a file, and skips what is not one. The last entry may
// have no line end: the next writer adds it.
func scan(from io.Reader, each func(entry) error) error {
	var half []byte
	if err := scanWhole(bufio.NewReaderSize(from, 64<<10), &half, each); err != nil {
		return err
	}
	if e, ok := parse(half); ok {
		return each(e)
	}
	return nil
}

// scanWhole passes on every entry that has its line end. The rest is kept in half.
func scanWhole(lines *bufio.Reader, half *[]byte, each func(entry) error) error {
	for {
		text, err := nextLine(lines, half)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		e, ok := parse(text)
		*half = (*half)[:0]
		if !ok {
			continue // half a line that a killed supervisor left
		}
		if err := each(e); err != nil {
			return err
		}
	}
}

// nextLine returns the next line with its end, until the next call. A line without an end is
// kept in half, and returned with io.EOF: a follower gets the rest with a later call. half
// also joins lines that are longer than the reader's buffer.
func nextLine(lines *bufio.Reader, half *[]byte) ([]byte, error) {
	for {
		part, err := lines.ReadSlice('\n')
		if err == nil && len(*half) == 0 {
			return part, nil
		}
		*half = append(*half, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return *half, err
		}
	}
}

// headOf reads the first line of a newer file without moving in it. The first
// file of a log has no head, and nothing was lost before it.
func headOf(file *os.File) entry {
	text, err := bufio.NewReader(io.NewSectionReader(file, 0, 1<<10)).ReadBytes('\n')
	if err != nil {
		return entry{}
	}
	if e, ok := parse(text); ok && e.Head {
		return e
	}
	return entry{}
}

// tally counts the lines of a file, and reads what its head says was lost. It reads all of
// the file, once for each start of a run, because the counts are stored nowhere else.
func tally(path string) (own, lost count, err error) {
	file, err := openIfThere(path)
	if file == nil {
		return own, lost, err
	}
	defer file.Close()
	head := headOf(file)
	err = scan(file, func(e entry) error {
		own.add(e.weight())
		return nil
	})
	return own, count{head.LostLines, head.LostBytes}, err
}

// openIfThere returns nil for a file that does not exist.
func openIfThere(path string) (*os.File, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return file, err
}

// closeAll closes files, some of which may be nil.
func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}
