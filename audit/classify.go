package audit

import (
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// named says what was done to the log where p is not the record that belongs there. It looks
// at the rest of the log, which may be damaged further.
func (v *verifier) named(p position, r record, found error) error {
	var problem *Problem
	if !errors.As(found, &problem) {
		return found
	}
	expected := v.tip.tree.size + 1
	rest := v.rest(p, r, expected)
	named := *problem
	switch {
	case !p.whole:
		return problem
	case rest.again || rest.genuine && (r.Number == 0 || r.Number <= expected):
		named.Kind, named.Message = Inserted, "a line that was not written there stands before it"
	case rest.genuine:
		named.Kind, named.Message = Reordered, fmt.Sprintf("record %d stands in its place, and it comes later", r.Number)
	case rest.continues || v.head != nil && r.Number > v.head.count:
		named.Kind, named.Message = Edited, fmt.Sprintf("it has the number %d", r.Number)
	case r.Number > expected:
		named.Kind, named.Message = Missing, fmt.Sprintf("records %d to %d are not there", expected, r.Number-1)
	case r.Number != 0 && r.Number < expected:
		named.Kind, named.Number, named.Message = Inserted, r.Number, "a second record has this number"
	case v.blamesPrevious(r, expected):
		named.Number, named.Message = expected-1, "the record behind it has another hash for it"
	default:
		named.Kind = Edited
	}
	return &named
}

// blamesPrevious reports whether the record before r is the one that was changed. Where its
// hash is stored that was looked at, and it is sound.
func (v *verifier) blamesPrevious(r record, expected uint64) bool {
	if r.Number != expected || r.prev == v.tip.hash || expected == 1 {
		return false
	}
	_, known := v.stored.leaf(expected - 1)
	return !known
}

// later is what the rest of a log has behind a bad line.
type later struct {
	genuine   bool // the record that belongs in the line's place
	again     bool // the line itself, in its own place
	continues bool // directly, with the number behind the expected one, which the line has not
}

func (v *verifier) rest(bad position, r record, expected uint64) (found later) {
	stored, known := v.stored.leaf(expected)
	var last tlog.Hash // of the line before
	begun := false
	_ = walk(v.segments, func(p position) error {
		if !begun {
			begun = p.segment == bad.segment && p.offset == bad.offset
			return nil
		}
		next, err := parse(p.line)
		if err != nil || !p.whole {
			return nil
		}
		if next.Number == expected && next.prev == v.tip.hash && (!known || next.hash == stored) && next.hash != r.hash {
			found.genuine = true
		}
		// A copy of a later record stands behind its own predecessor once more; one that
		// changed places does not.
		if r.Number > expected && next.hash == r.hash && next.prev == last {
			found.again = true
		}
		if last == (tlog.Hash{}) {
			found.continues = next.Number == expected+1 && r.Number != 0 && r.Number != expected
		}
		last = next.hash
		return nil
	})
	return found
}
