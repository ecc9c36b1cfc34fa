package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"clove.run/clove/internal/atomicfile"
)

// open opens the files and finds the end of the chain. It returns the entry that says what
// may be missing, or nil.
func (w *writer) open() (gap *Entry, err error) {
	segments, err := segmentsOf(w.dir)
	if err != nil {
		return nil, err
	}
	begins, err := anchored(anchorPath(w.dir, true))
	if err != nil {
		return nil, damaged(anchorName, err.Error())
	}
	segments, _ = behind(segments, begins.tree.size)
	past, unwritten, err := readHead(w.path(headName))
	if errors.Is(err, fs.ErrNotExist) && len(segments) == 0 {
		if err := makeHead(w.path(headName)); err != nil {
			return nil, storage("head", err)
		}
		past, unwritten, err = readHead(w.path(headName))
	}
	if err != nil {
		return nil, damaged(headName, fmt.Sprintf("the head cannot be read: %v", err))
	}
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	if w.head.file, err = os.OpenFile(w.path(headName), os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	if w.hashes, err = editHashes(w.path(hashesName)); err != nil {
		return nil, err
	}
	if err := mendLines(w.path(checkpointsName)); err != nil {
		return nil, err
	}
	cutOff, err := w.recover(segments, begins, past, boot)
	if err != nil {
		return nil, err
	}
	if err := w.covered(begins.tree.size); err != nil {
		return nil, err
	}
	w.head.now = past
	gap = gapOf(past, boot, unwritten, cutOff)
	if found := w.tip.tree.size; gap != nil && found > past.count {
		gap.What += fmt.Sprintf("; records %d to %d stood behind the stored head", past.count+1, found)
	}
	if unwritten = 0; gap != nil {
		unwritten = order{entries: []Entry{*gap}}.lost() // until it is written
	}
	// Open from here on.
	return gap, errors.Join(w.head.putUnwritten(unwritten), w.head.put(head{count: w.tip.tree.size, hash: w.tip.hash, boot: boot}), w.head.sync())
}

func bootID() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text)), err
}

func editHashes(path string) (*storedHashes, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	return &storedHashes{file}, err
}

// Codes of gaps.
const (
	gapKilled  = "killed"  // the writer ended without Close; Count is the most that can be missing
	gapStopped = "stopped" // the host stopped; how much is missing is not known
	gapCut     = "cut"     // what was not acknowledged was cut off; nothing that was is missing
)

// gapOf says what may be missing behind past's end. Enqueue's count in head is exact or one
// commit too high in the same boot; of an earlier boot it may be any.
func gapOf(past head, boot string, unwritten uint64, cutOff int64) *Entry {
	e := &Entry{Kind: KindGap, Time: time.Now()}
	switch {
	case past.closed:
		return nil
	case past.boot != boot:
		e.Code, e.What = gapStopped, "the host stopped while the log was open: checks and refusals of its last 100 ms may be missing"
	case unwritten > 0:
		e.Code, e.Count = gapKilled, unwritten
		e.What = fmt.Sprintf("the writer was killed: up to %d checks and refusals are missing", unwritten)
	case cutOff > 0:
		e.Code, e.What = gapCut, "the writer was killed: nothing that was acknowledged is missing"
	default:
		return nil
	}
	if cutOff > 0 {
		e.What += fmt.Sprintf("; %d bytes that were never acknowledged were cut off", cutOff)
	}
	return e
}

// recover reads the last segment, cuts off what was not acknowledged, and opens the segment
// for writing. It returns how many bytes it cut off.
func (w *writer) recover(segments []segment, begins anchor, past head, boot string) (cutOff int64, err error) {
	if len(segments) == 0 {
		if past.count > 0 {
			return 0, missing(past.count, 0)
		}
		return 0, storageOf(w.beginFirst())
	}
	last := segments[len(segments)-1]
	if w.tip, err = w.before(segments, begins, last.first-1); err != nil {
		return 0, err
	}
	end, err := w.read(last, past, past.boot == boot)
	if err != nil {
		return 0, err
	}
	if w.tip.tree.size < past.count {
		return 0, missing(past.count, w.tip.tree.size)
	}
	if w.file, err = os.OpenFile(last.path, os.O_RDWR, 0o600); err != nil {
		return 0, err
	}
	info, err := w.file.Stat()
	if err != nil {
		return 0, err
	}
	if cutOff = info.Size() - end; cutOff > 0 {
		err = errors.Join(w.file.Truncate(end), w.file.Sync())
	}
	w.size = end
	_ = w.allocate() // w.soft says how it went
	return cutOff, err
}

func storageOf(err error) error {
	if err == nil {
		return nil
	}
	return storage("a segment", err)
}

// before returns the chain's end after the first count records, of which the hashes are
// stored. Where the file of hashes is too short it is made again from the segments.
func (w *writer) before(segments []segment, begins anchor, count uint64) (tip, error) {
	stored, err := w.hashes.count()
	if err != nil {
		return tip{}, err
	}
	if stored < tlog.StoredHashCount(int64(count)) {
		if err := w.rebuild(segments[:len(segments)-1], begins); err != nil {
			return tip{}, err
		}
	}
	t, err := w.hashes.treeAt(count)
	if err != nil {
		return tip{}, err
	}
	hash, _ := w.hashes.leaf(count) // of record 0: zeros
	return tip{hash, t}, nil
}

// rebuild makes the file of hashes from whole segments. Of removed records it has what going
// on needs.
func (w *writer) rebuild(segments []segment, begins anchor) error {
	v := verifier{keep: true, tip: begins.tip}
	if err := v.walk(segments); err != nil {
		return err
	}
	removed := int64(begins.tree.size)
	for level, hash := range begins.tree.last {
		if err := w.hashes.write(tlog.StoredHashIndex(level, removed>>level-1), []tlog.Hash{hash}); err != nil {
			return hashesError(err)
		}
	}
	return hashesError(w.hashes.write(tlog.StoredHashCount(removed), v.hashes))
}

func hashesError(err error) error {
	if err == nil {
		return nil
	}
	return storage("the hashes", err)
}

// read adds the segment's records to the tip and their hashes to the file. It returns where
// they end, behind which nothing was acknowledged. The head of this boot is exact: the kernel
// has kept it. That of an earlier one may be older than records that were acknowledged.
func (w *writer) read(s segment, past head, exact bool) (end int64, err error) {
	count := tlog.StoredHashCount(int64(w.tip.tree.size))
	var hashes []tlog.Hash
	var bad error
	err = walk([]segment{s}, func(p position) error {
		r, err := follow(p, w.tip.tree.size, w.tip.hash)
		switch {
		case exact && w.tip.tree.size >= past.count:
			err = errNoRecord
		case err == nil && r.Number == past.count && r.hash != past.hash:
			err = changed(p, r.Number, "the stored head has another hash for it")
		}
		if err != nil {
			bad = err
			return errStop
		}
		added, err := w.tip.tree.add(r.hash)
		hashes, w.tip.hash = append(hashes, added...), r.hash
		end = p.offset + int64(len(p.line)) + 1
		return err
	})
	if bad != nil && w.tip.tree.size < past.count {
		return 0, bad
	}
	if past.closed && bad != nil || (past.closed || exact) && w.tip.tree.size > past.count {
		return 0, &Problem{Kind: Inserted, Number: past.count + 1, File: s.path, Message: "the head ends the log before it"}
	}
	if err != nil {
		return 0, err
	}
	return end, hashesError(w.hashes.write(count, hashes))
}

// mendLines ends a file of lines behind its last whole one.
func mendLines(path string) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if end := strings.LastIndexByte(string(text), '\n') + 1; err == nil && end < len(text) {
		err = atomicfile.Write(path, 0o600, text[:end])
	}
	return err
}
