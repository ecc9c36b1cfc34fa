package audit

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"clove.run/clove/agent"
)

// Report is what Verify looked at.
type Report struct {
	Records     uint64   `json:"records"`           // the number of the last one
	Removed     uint64   `json:"removed,omitempty"` // the number of the last one that Log.Remove removed
	Root        string   `json:"root"`              // of the tree, base64
	Checkpoints int      `json:"checkpoints"`       // that are good
	Covered     uint64   `json:"covered"`           // the last record that a good one covers
	Runs        int      `json:"runs"`              // logs of runs of their own
	Problem     *Problem `json:"problem,omitempty"`
}

// Verify reads the whole log at path: the directory, or a file that Export wrote. keys are
// public keys, without which no signature is looked at. exported is a checkpoint that was
// kept in another place, or nil. The first bad record is in the report's Problem; the error
// says that something could not be read.
//
// It may run beside the writer. What is not acknowledged yet is not looked at.
func Verify(path string, keys []string, exported []byte) (report Report, err error) {
	for range 3 {
		// A segment that was listed may be removed before it is read, and a writer may sign
		// and go on between the reading of the checkpoints and that of the head.
		report, err = verifyOnce(path, keys, exported)
		if !errors.Is(err, fs.ErrNotExist) && (report.Problem == nil || report.Problem.Kind != Uncovered) {
			break
		}
	}
	return report, err
}

func verifyOnce(path string, keys []string, exported []byte) (Report, error) {
	v := verifier{}
	err := v.prepare(path, keys, exported)
	if err == nil {
		err = v.verify(path)
	}
	report := Report{Records: v.tip.tree.size, Removed: v.removed, Checkpoints: v.good, Covered: v.covered, Runs: v.runs}
	var problem *Problem
	if errors.As(err, &problem) {
		report.Problem, err = problem, nil
	}
	if root, failed := v.tip.tree.root(); failed == nil {
		report.Root = root.String()
	}
	return report, err
}

// verifier walks along a log.
type verifier struct {
	tip       tip
	removed   uint64    // records, behind which the log begins
	beginRoot tlog.Hash // of the tree of those
	beginNote []byte    // that says so; nil: none are removed
	public    []string  // keys
	segments  []segment
	head      *head         // nil: there is none, all lines must be records
	stored    *storedHashes // what the file says; nil: nothing
	trust     *trust        // nil: no signature is looked at
	claims    []claim       // not reached yet, the smallest first
	good      int           // claims that held
	covered   uint64        // records that a signed claim which held covers
	behind    string        // the segment with a line behind the head; empty: there is none
	links     []Entry
	runs      int

	keep   bool // keep all hashes
	hashes []tlog.Hash
	each   func(position, record) error // of each sound record; may be nil
}

// claim is a checkpoint that the log must agree with.
type claim struct {
	size   uint64
	signed []byte
	from   string
}

// prepare reads what is beside the records.
func (v *verifier) prepare(path string, keys []string, exported []byte) (err error) {
	v.public = keys
	if len(keys) > 0 {
		if v.trust, err = newTrust(keys); err != nil {
			return &agent.Error{Kind: agent.KindInvalid, Step: step, Message: err.Error()}
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		if err := v.prepareDir(path); err != nil {
			return err
		}
	}
	// After the head: a writer may begin the next segment at any moment.
	if err := v.list(path, info.IsDir()); err != nil {
		return err
	}
	if info.IsDir() && v.head == nil && len(v.segments)+len(v.claims) > 0 {
		return damaged(headName, "the log has records and no head")
	}
	if exported != nil {
		c, err := parseCheckpoint(exported)
		if err != nil {
			return &agent.Error{Kind: agent.KindInvalid, Step: step, Message: err.Error()}
		}
		v.claims = append(v.claims, claim{c.size, exported, "the given checkpoint"})
	}
	slices.SortStableFunc(v.claims, func(a, b claim) int { return cmp.Compare(a.size, b.size) })
	return nil
}

// list finds where the log begins, and the segments from there on. Between the two readings
// a writer may remove segments, but only behind a newer beginning.
func (v *verifier) list(path string, dir bool) error {
	segments, err := segmentsOf(path)
	if err != nil {
		return err
	}
	if err := v.begin(anchorPath(path, dir)); err != nil {
		return err
	}
	if !dir {
		segments[0].first = v.removed + 1
	}
	v.segments, _ = behind(segments, v.removed)
	return nil
}

// prepareDir reads the head first: what it counts is in the segments already.
func (v *verifier) prepareDir(dir string) error {
	saved, err := savedCheckpoints(filepath.Join(dir, checkpointsName))
	if err != nil {
		return damaged(checkpointsName, err.Error())
	}
	for i, c := range saved {
		v.claims = append(v.claims, claim{c.Size, []byte(c.Note), fmt.Sprintf("line %d of the stored checkpoints", i+1)})
	}
	found, _, err := readHead(filepath.Join(dir, headName))
	switch {
	case err == nil:
		v.head = &found
	case !errors.Is(err, fs.ErrNotExist):
		return damaged(headName, err.Error())
	}
	v.stored, err = openHashes(filepath.Join(dir, hashesName))
	return err
}

func (v *verifier) verify(path string) error {
	defer v.stored.close()
	if err := v.walk(v.segments); err != nil {
		return err
	}
	if err := v.end(path); err != nil {
		return err
	}
	return v.verifyRuns(path)
}

// walk follows the chain up to what the head acknowledges.
func (v *verifier) walk(segments []segment) error {
	v.segments = segments
	if err := v.reached(); err != nil {
		return err
	}
	return walk(segments, func(p position) error {
		if v.head != nil && v.tip.tree.size >= v.head.count {
			v.behind = p.segment.path
			return errStop
		}
		r, err := follow(p, v.tip.tree.size, v.tip.hash)
		if err == nil {
			err = v.compare(p, r)
		}
		if err != nil {
			return v.named(p, r, err)
		}
		return v.take(p, r)
	})
}

// take adds a sound record.
func (v *verifier) take(p position, r record) error {
	if v.each != nil {
		if err := v.each(p, r); err != nil {
			return err
		}
	}
	added, err := v.tip.tree.add(r.hash)
	if err != nil {
		return err
	}
	if v.tip.hash = r.hash; v.keep {
		v.hashes = append(v.hashes, added...)
	}
	return v.note(r.Entry)
}

// compare holds a record to what is stored beside it.
func (v *verifier) compare(p position, r record) error {
	if v.head != nil && r.Number == v.head.count && r.hash != v.head.hash {
		return changed(p, r.Number, "the stored head has another hash for it")
	}
	if hash, ok := v.stored.leaf(r.Number); ok && hash != r.hash {
		return changed(p, r.Number, "another hash is stored for it")
	}
	return nil
}

// note follows what a record says about the log itself.
func (v *verifier) note(e Entry) error {
	if e.Kind == KindLink {
		v.links = append(v.links, e)
	}
	return v.reached()
}

// reached checks the claims about the tree as it is now.
func (v *verifier) reached() error {
	for len(v.claims) > 0 && v.claims[0].size <= v.tip.tree.size {
		c := v.claims[0]
		v.claims = v.claims[1:]
		if err := v.hold(c); err != nil {
			return err
		}
		v.good++
		if v.trust != nil {
			v.covered = max(v.covered, c.size)
		}
	}
	return nil
}

func (v *verifier) hold(c claim) error {
	claimed, err := parseCheckpoint(c.signed)
	if err == nil && v.trust != nil {
		claimed, err = v.trust.checkpoint(c.signed)
	}
	if err != nil {
		return damaged("", fmt.Sprintf("%s, over %d records, is not good: %v", c.from, c.size, err))
	}
	if claimed.size != c.size {
		return damaged("", fmt.Sprintf("%s is over %d records, not %d", c.from, claimed.size, c.size))
	}
	root, err := v.rootAt(c.size)
	if err != nil && c.size < v.removed {
		return damaged(hashesName, fmt.Sprintf("%s, over %d records of the %d that were removed, cannot be compared: %v", c.from, c.size, v.removed, err))
	}
	if err != nil || root == claimed.root {
		return err
	}
	return &Problem{Kind: Rewritten, Number: c.size, Message: "the records up to this one are not those of " + c.from}
}

// rootAt is the root of the tree as it is now, or as it was in the part that was removed.
func (v *verifier) rootAt(size uint64) (tlog.Hash, error) {
	if size < v.removed {
		return v.rootBefore(size)
	}
	return v.tip.tree.root()
}

// end looks at what claims more records than there are, or fewer.
func (v *verifier) end(path string) error {
	have := v.tip.tree.size
	if v.head != nil && v.head.count > have {
		return missing(v.head.count, have)
	}
	if v.behind != "" {
		if err := unacknowledged(path, v.behind, have); err != nil {
			return err
		}
	}
	if len(v.claims) == 0 {
		if v.trust == nil {
			return nil
		}
		return uncovered(v.covered, have)
	}
	c := v.claims[0]
	if v.trust != nil {
		if _, err := v.trust.checkpoint(c.signed); err != nil {
			return damaged("", fmt.Sprintf("%s, over %d records, is not good: %v", c.from, c.size, err))
		}
	}
	return &Problem{Kind: Truncated, Number: have + 1, Message: fmt.Sprintf("the log ends behind record %d, and %s covers %d", have, c.from, c.size)}
}
