package audit

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"clove.run/clove/internal/atomicfile"
)

// Keep says how much of a log is kept. A zero field is no bound.
type Keep struct {
	Bytes int64         // of all segments together
	Age   time.Duration // of the last record of a segment
}

// excess returns how many of the oldest segments are not kept. The one in use is.
func (k Keep) excess(segments []segment, now time.Time) (count int, err error) {
	var sizes []int64
	var all int64
	var old int
	for i, s := range segments {
		info, err := os.Stat(s.path)
		if err != nil {
			return 0, err
		}
		sizes, all = append(sizes, info.Size()), all+info.Size()
		if k.Age > 0 && now.Sub(info.ModTime()) > k.Age && i == old {
			old++
		}
	}
	for k.Bytes > 0 && count < len(sizes) && all > k.Bytes {
		all -= sizes[count]
		count++
	}
	return max(0, min(max(count, old), len(segments)-1)), nil
}

// Remove removes the oldest segments that are not kept, with the logs of runs that they
// link, and returns the number of the last record that is removed. It verifies them first:
// a damaged log keeps everything. What is left is anchored by a signed note, and a record of
// kind remove says what is gone. One goroutine may call it.
func (l *Log) Remove(keep Keep) (removed uint64, err error) {
	keys := l.options.Keys
	if keys == nil {
		return 0, nil // nothing could anchor the rest
	}
	segments, err := segmentsOf(l.dir)
	if err != nil {
		return 0, err
	}
	begins, err := anchored(anchorPath(l.dir, true))
	if err != nil {
		return 0, err
	}
	kept, stale := behind(segments, begins.tree.size)
	excess, err := keep.excess(kept, time.Now())
	if err != nil {
		return 0, err
	}
	if excess == 0 {
		return begins.tree.size, l.unlink(stale)
	}
	v, err := l.verifyUntil(kept[excess].first - 1)
	if err != nil {
		return 0, err
	}
	end := anchor{v.tip}
	if _, err := l.hand(order{change: func(w *writer) error { return w.anchor(end) }}); err != nil {
		return 0, err
	}
	return end.tree.size, l.unlink(append(stale, kept[:excess]...))
}

// verifyUntil follows the chain up to a record that ends a segment.
func (l *Log) verifyUntil(number uint64) (*verifier, error) {
	public, err := l.options.Keys.Public()
	if err != nil {
		return nil, err
	}
	v := &verifier{}
	if err := v.prepare(l.dir, public, nil); err != nil {
		return nil, err
	}
	defer v.stored.close()
	later, first := behind(v.segments, number)
	if err := v.walk(first); err != nil {
		return nil, err
	}
	if v.tip.tree.size != number || len(later) == 0 {
		return nil, missing(number, v.tip.tree.size)
	}
	return v, nil
}

// anchor makes the chain begin behind end. Before, it writes into the chain what that means.
func (w *writer) anchor(end anchor) error {
	e := Entry{Kind: KindRemove, Count: end.tree.size, Digest: hex.EncodeToString(end.hash[:]), What: fmt.Sprintf("records 1 to %d", end.tree.size)}
	if _, err := w.stage(order{entries: stamped([]Entry{e}), end: true}); err != nil {
		return err
	}
	if err := w.sync(); err != nil {
		return err
	}
	if err := w.checkpoint(); err != nil { // over what is removed, and the record of that
		return err
	}
	signed, err := w.options.Keys.signAnchor(end)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(anchorPath(w.dir, true), 0o600, signed); err != nil {
		return storage("where the log begins", err)
	}
	return w.forgetCheckpoints(end.tree.size)
}

// forgetCheckpoints removes the stored checkpoints of trees that end in removed records.
func (w *writer) forgetCheckpoints(removed uint64) error {
	saved, err := savedCheckpoints(w.path(checkpointsName))
	if err != nil {
		return err
	}
	var text []byte
	for _, c := range saved {
		if c.Size < removed {
			continue
		}
		line, err := json.Marshal(c)
		if err != nil {
			return err
		}
		text = append(append(text, line...), '\n')
	}
	return atomicfile.Write(w.path(checkpointsName), 0o600, text)
}

// unlink removes segments which the anchor covers, the oldest first. The logs of runs go
// before the records that link them, which a repetition after a kill reads again.
func (l *Log) unlink(segments []segment) error {
	for _, s := range segments {
		var failed error
		err := s.walk(0, func(p position) error {
			if r, err := parse(p.line); err == nil && r.Kind == KindLink && r.Run.Valid() {
				failed = errors.Join(failed, os.RemoveAll(filepath.Join(l.dir, linkedName, string(r.Run))))
			}
			return nil
		})
		if err := errors.Join(err, failed); err != nil {
			return err
		}
		if err := os.Remove(s.path); err != nil {
			return err
		}
	}
	if len(segments) == 0 {
		return nil
	}
	return atomicfile.Sync(l.dir)
}
