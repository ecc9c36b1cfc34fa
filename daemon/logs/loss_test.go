package logs

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"clove.run/clove/api"
)

// said returns the lines from..to, each with its number, of different lengths.
func said(l *Log, from, to int) {
	out := l.Stream("stdout")
	for n := from; n <= to; n++ {
		fmt.Fprintln(out, saying(n))
	}
}

func saying(n int) string { return fmt.Sprintf("line %d%*s", n, n%7, "") }

// sums are the counts of all lines up to each number.
var sums = sync.OnceValue(func() []count {
	sums := make([]count, 20001)
	for n := 1; n < len(sums); n++ {
		sums[n] = count{int64(n), sums[n-1].bytes + int64(len(saying(n)))}
	}
	return sums
})

// upTo is the count that a reader must have got when line n was its last.
func upTo(n int64) count { return sums()[n] }

// listener checks that the numbers, offsets and losses that a reader gets add up.
type listener struct {
	told  count
	lost  count
	marks int
}

func (h *listener) hear(line api.LogLine) error {
	if line.LostLines > 0 {
		lost := count{line.LostLines, line.LostBytes}
		h.told.add(lost)
		h.lost.add(lost)
		h.marks++
		if want := upTo(h.told.lines); h.told != want || line.Number != 0 {
			return fmt.Errorf("a mark of %+v leads to %+v, want %+v", lost, h.told, want)
		}
		return nil
	}
	h.told.add(count{1, int64(len(line.Text))})
	if line.Number != h.told.lines || line.Offset != h.told.bytes || line.Text != saying(int(line.Number)) {
		return fmt.Errorf("after %+v comes %d at %d: %q", h.told, line.Number, line.Offset, line.Text)
	}
	return nil
}

// full makes the log's disk full until the returned function is called.
func full(t *testing.T, l *Log) (repair func()) {
	t.Helper()
	works := l.file
	broken, err := os.Open(os.DevNull) // opened for reading, so writes fail
	must(t, err)
	l.file = broken
	return func() {
		if l.file != broken { // a rotation closed the broken file and opened another one
			must(t, works.Close())
			return
		}
		must(t, broken.Close())
		l.file = works
	}
}

// A reader that resumes after a line that was dropped gets one mark, exact to the byte, and
// continues with the right numbers. The control resumes after a line that exists.
func TestResumeCountsWhatIsMissing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, 8<<10)
	said(l, 1, 1000)
	first := everything(t, dir, all)[1].Number
	for _, row := range []struct {
		after int64
		marks int
	}{{0, 1}, {17, 1}, {first - 2, 1}, {first - 1, 0}, {first, 0}, {first + 20, 0}, {1000, 0}, {2000, 0}} {
		h := listener{told: upTo(row.after)}
		offset := h.told.bytes
		must(t, Read(t.Context(), dir, Choice{Tail: -1, After: row.after, Offset: &offset}, h.hear))
		if h.marks != row.marks || h.told.lines != max(1000, row.after) {
			t.Errorf("after %d: %+v", row.after, h)
		}
	}
	lines := everything(t, dir, Choice{Tail: -1, After: 17})
	if lines[0].LostLines != first-18 || lines[0].LostBytes != 0 {
		t.Errorf("without an offset: %+v", lines[0])
	}
}

// A mark for lines that a full disk lost is shown completely to a reader that has none of
// them, and in part to one that has some. Numbering continues after the lost lines.
func TestResumeAtAMark(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, 64<<10)
	said(l, 1, 10)
	repair := full(t, l)
	said(l, 11, 20)
	repair()
	said(l, 21, 30)
	for _, row := range []struct {
		after, lost int64
	}{{0, 10}, {9, 10}, {10, 10}, {14, 6}, {20, 0}, {21, 0}} {
		h := listener{told: upTo(row.after)}
		offset := h.told.bytes
		must(t, Read(t.Context(), dir, Choice{Tail: -1, After: row.after, Offset: &offset}, h.hear))
		if h.told.lines != 30 || h.lost.lines != row.lost {
			t.Errorf("after %d: %+v", row.after, h)
		}
	}
}

// The end of a log is the last chance to record what was lost.
func TestCloseTellsWhatWasRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, 64<<10)
	said(l, 1, 10)
	repair := full(t, l)
	said(l, 11, 20)
	repair()
	must(t, l.Close())
	var h listener
	must(t, Read(t.Context(), dir, all, h.hear))
	if h.told != upTo(20) || h.lost.lines != 10 {
		t.Errorf("%+v", h)
	}
}

// A disk that becomes full in the middle of an entry leaves half of it. That half is not
// counted and does not swallow the next entry, neither for a writer that continues the log nor
// for a follower at that place.
func TestHalfAnEntryIsNobodys(t *testing.T) {
	t.Parallel()
	whole := `{"time":"2030-01-01T00:00:00Z","stream":"stdout","text":"` + saying(6) + `"}`
	for name, row := range map[string]struct {
		left   string
		resume int // the line that is written next
	}{
		"half an entry":           {whole[:len(whole)/2], 6},
		"an entry without an end": {whole, 7},
	} {
		for _, reopen := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, reopened %v", name, reopen), func(t *testing.T) {
				dir := t.TempDir()
				l := open(t, dir, 64<<10)
				said(l, 1, 5)
				r := &reader{dir: dir, choice: all}
				defer r.close()
				var h listener
				r.emit = h.hear
				must(t, r.past())
				_, err := l.put([]byte(row.left))
				must(t, err)
				must(t, r.catchUp())
				if reopen {
					must(t, l.Close())
					l = open(t, dir, 64<<10)
				} else if row.resume == 7 {
					l.now.add(count{1, int64(len(saying(6)))}) // as append does
				}
				said(l, row.resume, 1000)
				must(t, l.rotate(time.Now()))
				said(l, 1001, 1010)
				must(t, r.catchUp())
				var late listener
				must(t, Read(t.Context(), dir, all, late.hear))
				if h.told != upTo(1010) || late.told != upTo(1010) {
					t.Errorf("the follower %+v, a reader %+v", h, late)
				}
			})
		}
	}
}
