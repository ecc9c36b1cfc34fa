package audit

import (
	"errors"
	"io/fs"
)

// Page is a part of the records that a filter chooses.
type Page struct {
	Entries []Entry
	Next    uint64 // the number behind which the next part begins; 0: this was the last one
}

// ReadPage returns at most most of the records behind filter.After that the filter chooses,
// and looks at no more than scan records for them. filter.Last is not looked at, and lines
// that are no records, or are behind the head, are left out. It verifies nothing.
func ReadPage(dir string, filter Filter, most, scan int) (page Page, err error) {
	last, err := Last(dir)
	if err != nil {
		return page, err
	}
	segments, err := segmentsOf(dir)
	if err != nil || len(segments) == 0 {
		return page, err
	}
	var number uint64
	err = walk(segments[firstBehind(segments, filter.After):], func(p position) error {
		if p.offset == 0 {
			number = p.segment.first - 1
		}
		// Records are numbered without a gap: most lines are passed over unread.
		if number++; number > last {
			return errStop
		}
		if !p.whole || number <= filter.After {
			return nil
		}
		if len(page.Entries) >= most || scan == 0 {
			page.Next = number - 1
			return errStop
		}
		scan--
		if r, err := parse(p.line); err == nil && filter.passes(p.line, r.Entry) {
			page.Entries = append(page.Entries, r.Entry)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) { // removed after it was listed: the next part finds the others
		page.Next, err = max(number, filter.After, 1), nil
	}
	return page, err
}
