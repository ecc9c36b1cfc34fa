package audit

import (
	"context"

	"clove.run/clove/internal/watch"
)

// Follow passes on the records behind filter.After that the filter chooses, and then new ones
// as they are acknowledged, until ctx ends or each fails. filter.Last is not looked at.
func Follow(ctx context.Context, dir string, filter Filter, each func(Entry) error) error {
	watcher, err := watch.Dir(dir)
	if err != nil {
		return err
	}
	defer watcher.Close()
	at := cursor{dir: dir, number: filter.After}
	for {
		if err := at.catchUp(filter, each); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-watcher.Changed:
		}
	}
}

// cursor is how far a follower has read.
type cursor struct {
	dir     string
	number  uint64 // of the last record that was read
	segment segment
	line    uint64 // the number of the last line of it that was read
	offset  int64  // behind that line
}

// catchUp reads all that the head covers.
func (c *cursor) catchUp(filter Filter, each func(Entry) error) error {
	last, err := Last(c.dir)
	if err != nil {
		return err
	}
	segments, err := segmentsOf(c.dir)
	if err != nil {
		return err
	}
	for _, s := range segments[firstBehind(segments, c.number):] {
		if s.first < c.segment.first {
			continue
		}
		if s.path != c.segment.path {
			c.segment, c.line, c.offset = s, s.first-1, 0
		}
		if err := unlessRemoved(c.read(last, filter, each)); err != nil {
			return err
		}
	}
	return nil
}

func (c *cursor) read(last uint64, filter Filter, each func(Entry) error) error {
	return c.segment.walk(c.offset, func(p position) error {
		if !p.whole || c.line >= last {
			return errStop
		}
		c.line, c.offset = c.line+1, p.offset+int64(len(p.line))+1
		r, err := parse(p.line)
		if err != nil {
			return nil // Query and Verify say so
		}
		c.number = max(c.number, r.Number)
		if !filter.passes(p.line, r.Entry) {
			return nil
		}
		return each(r.Entry)
	})
}
