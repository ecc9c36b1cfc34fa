package audit

import (
	"fmt"
	"path/filepath"

	"golang.org/x/mod/sumdb/tlog"

	"clove.run/clove/agent"
)

// Damage is what is wrong with a log.
type Damage string

// The kinds of damage.
const (
	Edited     Damage = "edited"     // a record is not what was written
	Missing    Damage = "missing"    // a record was removed, and later ones are there
	Inserted   Damage = "inserted"   // a line stands where it was not written
	Reordered  Damage = "reordered"  // a record stands in the wrong place
	Truncated  Damage = "truncated"  // the log ends before its stored head or a checkpoint
	Rewritten  Damage = "rewritten"  // the chain is sound and is not the one that a checkpoint covers
	Uncovered  Damage = "uncovered"  // records that no checkpoint covers are more than a writer leaves
	Unreadable Damage = "unreadable" // a file beside the records is damaged
)

// Problem is the first thing that is wrong with a log, and the error for it.
type Problem struct {
	Kind    Damage   `json:"kind"`
	Number  uint64   `json:"number,omitempty"` // the first bad record, or the first missing one
	Run     agent.ID `json:"run,omitempty"`    // whose log it is, if not the host's
	File    string   `json:"file,omitempty"`
	Message string   `json:"message"`
}

func (p *Problem) Error() string {
	text := "audit"
	if p.Run != "" {
		text += " log of run " + string(p.Run)
	}
	if p.Number > 0 {
		text += fmt.Sprintf(": record %d", p.Number)
	}
	text += ": " + string(p.Kind) + ": " + p.Message
	if p.File != "" {
		text += " (" + filepath.Base(p.File) + ")"
	}
	return text
}

func damaged(file, message string) *Problem {
	return &Problem{Kind: Unreadable, File: file, Message: message}
}

func changed(p position, number uint64, message string) *Problem {
	return &Problem{Kind: Edited, Number: number, File: p.segment.path, Message: message}
}

// missing is for a log that should have want records and has fewer.
func missing(want, have uint64) *Problem {
	return &Problem{Kind: Truncated, Number: have + 1, Message: fmt.Sprintf("the log ends behind record %d, and its stored head is at %d", have, want)}
}

// uncoveredMax is how many records may be behind the newest checkpoint: twice what a writer
// signs after, since it commits many at once.
const uncoveredMax = 2048

// uncovered is the problem of a log of which good checkpoints cover fewer records than they
// must, or nil.
func uncovered(covered, have uint64) error {
	if have-covered <= uncoveredMax {
		return nil
	}
	return &Problem{Kind: Uncovered, Number: covered + 1, File: checkpointsName,
		Message: fmt.Sprintf("records %d to %d: no checkpoint that verifies covers them, and at most %d can be without one", covered+1, have, uncoveredMax)}
}

// follow reads the record that stands behind the first count ones, the last of which has the
// hash prev.
func follow(p position, count uint64, prev tlog.Hash) (record, error) {
	number := count + 1
	if !p.whole {
		return record{}, &Problem{Kind: Truncated, Number: number, File: p.segment.path, Message: "its line has no end"}
	}
	r, err := parse(p.line)
	switch {
	case err != nil:
		return r, changed(p, number, "its line is not a record")
	case r.Number != number:
		return r, &Problem{Kind: Reordered, Number: number, File: p.segment.path, Message: fmt.Sprintf("record %d stands in its place", r.Number)}
	case r.prev != prev:
		return r, changed(p, number, "it does not follow the record before it")
	case p.offset == 0 && p.segment.first != number:
		return r, changed(p, number, "its segment is named for another record")
	}
	return r, nil
}
