package audit

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"clove.run/clove/agent"
)

// Filter chooses records. Empty fields choose all.
type Filter struct {
	// Owner and Namespace together are a view: nothing of other owners or namespaces passes.
	Owner     *uint32
	Namespace string // this one and those below it
	Run       agent.ID
	Kind      Kind
	Verdict   string
	Since     time.Time // inclusive
	Until     time.Time // exclusive
	Text      string    // anywhere in the record's line, as it is written
	After     uint64    // only records behind this number
	Last      int       // only the last so many; 0: all
}

func (f Filter) passes(line []byte, e Entry) bool {
	return e.Number > f.After &&
		(f.Owner == nil || e.Owner == *f.Owner) &&
		(f.Namespace == "" || e.Namespace == f.Namespace || strings.HasPrefix(e.Namespace, f.Namespace+"/")) &&
		(f.Run == "" || e.Run == f.Run) &&
		(f.Kind == "" || e.Kind == f.Kind) &&
		(f.Verdict == "" || e.Verdict == f.Verdict) &&
		(f.Since.IsZero() || !e.Time.Before(f.Since)) &&
		(f.Until.IsZero() || e.Time.Before(f.Until)) &&
		bytes.Contains(line, []byte(f.Text))
}

// Query passes on the records that the filter chooses, in their order, until each fails. It
// verifies nothing. Lines that are no records, and those behind the head, are left out, and
// the error names the first of them when all others are through. With Last it reads the
// segments from the end, and only as many as it needs; the same is true of After.
func Query(dir string, filter Filter, each func(Entry) error) error {
	last, err := Last(dir) // before the segments are listed: they have what it covers
	if err != nil {
		return err
	}
	segments, err := segmentsOf(dir)
	if err != nil {
		return err
	}
	segments = slices.Clone(segments[firstBehind(segments, filter.After):])
	if filter.Last > 0 {
		return queryLast(segments, last, filter, each)
	}
	var bad error
	for _, s := range segments {
		found, failed, err := filter.in(s, last)
		if err != nil {
			return err
		}
		bad = cmp.Or(bad, failed)
		if err := eachOf(found, each); err != nil {
			return err
		}
	}
	return bad
}

// firstBehind is the index of the segment with the first record behind number.
func firstBehind(segments []segment, number uint64) int {
	behind := slices.IndexFunc(segments, func(s segment) bool { return s.first > number+1 })
	if behind < 0 {
		behind = len(segments)
	}
	return max(behind-1, 0)
}

func queryLast(segments []segment, last uint64, filter Filter, each func(Entry) error) error {
	var found []Entry
	var bad error
	for _, s := range slices.Backward(segments) {
		more, failed, err := filter.in(s, last)
		if err != nil {
			return err
		}
		bad = cmp.Or(failed, bad)
		if found = append(more, found...); len(found) >= filter.Last {
			found = found[len(found)-filter.Last:]
			break
		}
	}
	if err := eachOf(found, each); err != nil {
		return err
	}
	return bad
}

func eachOf(entries []Entry, each func(Entry) error) error {
	for _, e := range entries {
		if err := each(e); err != nil {
			return err
		}
	}
	return nil
}

// in returns the chosen records of one segment up to the last one of the log, and an error
// for its first line that is no record.
func (f Filter) in(s segment, last uint64) (found []Entry, bad, err error) {
	number := s.first - 1 // of the line, whatever it says itself
	err = s.walk(0, func(p position) error {
		if number++; number > last {
			bad = cmp.Or(bad, unacknowledged(filepath.Dir(s.path), s.path, last))
			return errStop
		}
		r, err := parse(p.line)
		if err != nil {
			bad = cmp.Or(bad, fmt.Errorf("%s has a line at byte %d that is not a record: clove audit verify", s.path, p.offset))
		} else if f.passes(p.line, r.Entry) {
			found = append(found, r.Entry)
		}
		return nil
	})
	return found, bad, unlessRemoved(err)
}

// unlessRemoved leaves out the error of a segment that was removed after it was listed, and
// that of a walk which ends early.
func unlessRemoved(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errStop) {
		return nil
	}
	return err
}
