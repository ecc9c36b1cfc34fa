package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

// anchor is where the chain begins after its first records were removed: a checkpoint over
// them that also has what following the chain needs. Its note's text goes on behind that of
// a checkpoint:
//
//	hash BASE64  of the last complete subtree of each height, the lowest first: the first
//	             one is the hash of the last record that was removed
type anchor struct{ tip }

const anchorHash = "hash "

var errNoAnchor = errors.New("it is not where a log begins")

// signAnchor returns the note of an anchor.
func (k *Keys) signAnchor(a anchor) ([]byte, error) {
	root, err := a.tree.root()
	if err != nil {
		return nil, err
	}
	return k.sign(func(origin string) string {
		text := checkpoint{origin, a.tree.size, root}.text()
		for _, hash := range a.tree.last {
			text += anchorHash + hash.String() + "\n"
		}
		return text
	})
}

// parseAnchor reads the text of a note, whose signatures it does not look at.
func parseAnchor(text string) (anchor, error) {
	c, err := parseCheckpoint([]byte(text))
	if err != nil || c.size == 0 {
		return anchor{}, errNoAnchor
	}
	a := anchor{tip{tree: tree{size: c.size}}}
	for line := range strings.Lines(text[len(c.text()):]) {
		text, is := strings.CutPrefix(strings.TrimSuffix(line, "\n"), anchorHash)
		hash, err := tlog.ParseHash(text)
		if !is || err != nil {
			return anchor{}, errNoAnchor
		}
		a.tree.last = append(a.tree.last, hash)
	}
	if len(a.tree.last) == 0 || c.size>>len(a.tree.last) > 0 || c.size>>(len(a.tree.last)-1) == 0 {
		return anchor{}, errNoAnchor
	}
	a.hash = a.tree.last[0]
	if root, err := a.tree.root(); err != nil || root != c.root {
		return anchor{}, errNoAnchor
	}
	return a, nil
}

// readAnchor returns the note of the file at path; nil: the chain begins at record 1.
func readAnchor(path string) (signed []byte, err error) {
	signed, err = os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return signed, err
}

// anchorPath is where the anchor of a log lies: in its directory, or beside an exported file.
func anchorPath(path string, dir bool) string {
	if dir {
		return path + "/" + anchorName
	}
	return path + "." + anchorName
}

// anchored reads the anchor of a log that is written to. Verify looks at its signature.
func anchored(path string) (anchor, error) {
	signed, err := readAnchor(path)
	if err != nil || signed == nil {
		return anchor{}, err
	}
	text, _, _ := strings.Cut(string(signed), "\n\n")
	return parseAnchor(text + "\n")
}

// begin has the verifier begin behind the records that were removed.
func (v *verifier) begin(path string) error {
	signed, err := readAnchor(path)
	if err != nil || signed == nil {
		return err
	}
	text, _, _ := strings.Cut(string(signed), "\n\n")
	text += "\n"
	if v.trust != nil {
		if text, err = v.trust.open(signed); err != nil {
			return damaged(path, fmt.Sprintf("where the log begins is not good: %v", err))
		}
	}
	a, err := parseAnchor(text)
	if err != nil {
		return damaged(path, err.Error())
	}
	if v.trust != nil {
		v.covered = a.tree.size
	}
	v.tip, v.removed, v.beginRoot, v.beginNote = a.tip, a.tree.size, rootOf(text), signed
	return nil
}

func rootOf(text string) tlog.Hash {
	c, _ := parseCheckpoint([]byte(text)) // it was parsed
	return c.root
}

// rootBefore is the tree's root when it had fewer records than were removed since. The
// stored hashes are not believed: they must lead from there to where the log begins.
func (v *verifier) rootBefore(size uint64) (root tlog.Hash, err error) {
	if v.stored == nil {
		return root, errors.New("the hashes of the removed records are not there")
	}
	if root, err = tlog.TreeHash(int64(size), v.stored); err != nil || size == 0 {
		return root, err
	}
	proof, err := tlog.ProveTree(int64(v.removed), int64(size), v.stored)
	if err != nil {
		return root, err
	}
	return root, tlog.CheckTree(proof, int64(v.removed), v.beginRoot, int64(size), root)
}

// behind leaves out the segments whose records were removed: a kill may have left some.
func behind(segments []segment, removed uint64) (kept, stale []segment) {
	at := slices.IndexFunc(segments, func(s segment) bool { return s.first > removed })
	if at < 0 {
		at = len(segments)
	}
	return segments[at:], segments[:at]
}
