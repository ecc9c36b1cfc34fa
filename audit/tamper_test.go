package audit

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sample is a sound log of 800 records, and what is known of it elsewhere.
type sample struct {
	dir      string
	keys     *Keys
	public   []string
	exported []byte
}

const sampled = 800

func newSample(t testing.TB) sample {
	t.Helper()
	root := t.TempDir()
	keys, err := OpenKeys(filepath.Join(root, "keys"))
	must(t, err)
	s := sample{dir: filepath.Join(root, "audit"), keys: keys}
	o := small()
	o.Keys, o.CheckpointRecords = keys, 100
	l := open(t, s.dir, o)
	for range sampled / 50 {
		var batch []Entry
		for range 50 {
			batch = append(batch, decision(fmt.Sprintf("what %d", len(batch))))
		}
		_, err := l.Append(batch...)
		must(t, err)
	}
	must(t, l.Close())
	s.public, err = keys.Public()
	must(t, err)
	exported, err := Export(s.dir, keys, new(bytes.Buffer))
	must(t, err)
	s.exported = exported.Checkpoint
	return s
}

// copied is the log in another directory.
func (s sample) copied(t testing.TB) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "audit")
	must(t, os.CopyFS(to, os.DirFS(s.dir)))
	return to
}

// lines are those of all segments, with the segment of each.
type lines struct {
	paths []string
	text  []string
}

func linesOf(t testing.TB, dir string) (l lines) {
	t.Helper()
	segments, err := segmentsOf(dir)
	must(t, err, walk(segments, func(p position) error {
		l.paths, l.text = append(l.paths, p.segment.path), append(l.text, string(p.line))
		return nil
	}))
	return l
}

// save writes the lines; paths without a line become empty.
func (l lines) save(t testing.TB) {
	t.Helper()
	files := map[string][]byte{}
	for i, path := range l.paths {
		files[path] = append(append(files[path], l.text[i]...), '\n')
	}
	for path, text := range files {
		must(t, os.WriteFile(path, text, 0o600))
	}
}

func (l *lines) remove(number int) {
	l.paths, l.text = slices.Delete(l.paths, number-1, number), slices.Delete(l.text, number-1, number)
}

func (l *lines) insert(number int, text string) {
	l.paths, l.text = slices.Insert(l.paths, number-1, l.paths[number-2]), slices.Insert(l.text, number-1, text)
}

// rechained makes the chain sound again from a record on, as an attacker does to hide a change.
func (l *lines) rechained(t testing.TB, from int) {
	t.Helper()
	before, err := parse([]byte(l.text[from-2]))
	must(t, err)
	for i := from - 1; i < len(l.text); i++ {
		r, err := parse([]byte(l.text[i]))
		must(t, err)
		line, hash, err := r.line(uint64(i+1), before.hash)
		must(t, err)
		l.text[i], before.hash = strings.TrimSuffix(string(line), "\n"), hash
	}
}

// tamperings are what an attacker may do to the records. In lines, number n is at n-1.
var tamperings = map[string]struct {
	do     func(testing.TB, *lines)
	kind   Damage
	number uint64
	// Where no hashes are stored, if it is something else.
	bareKind Damage
	bare     uint64
}{
	"edit":           {do: func(_ testing.TB, l *lines) { l.text[329] = strings.Replace(l.text[329], "allow", "deny!", 1) }, kind: Edited, number: 330},
	"edit the first": {do: func(_ testing.TB, l *lines) { l.text[0] = strings.Replace(l.text[0], "allow", "deny!", 1) }, kind: Edited, number: 1},
	"edit the last":  {do: func(_ testing.TB, l *lines) { l.text[799] = strings.Replace(l.text[799], "allow", "deny!", 1) }, kind: Edited, number: 800},
	"edit its number": {do: func(_ testing.TB, l *lines) {
		l.text[329] = strings.Replace(l.text[329], `"number":330`, `"number":999`, 1)
	}, kind: Edited, number: 330},
	"edit to nonsense": {do: func(_ testing.TB, l *lines) { l.text[329] = "{" }, kind: Edited, number: 330},
	"edit to control":  {do: func(_ testing.TB, l *lines) { l.text[329] = strings.Replace(l.text[329], "what", "wh\x01t", 1) }, kind: Edited, number: 330},
	"edit and chain again": {do: func(t testing.TB, l *lines) {
		l.text[329] = strings.Replace(l.text[329], "allow", "deny!", 1)
		l.rechained(t, 331)
	}, kind: Edited, number: 330, bareKind: Rewritten, bare: 400},
	"delete":             {do: func(_ testing.TB, l *lines) { l.remove(330) }, kind: Missing, number: 330},
	"delete two":         {do: func(_ testing.TB, l *lines) { l.remove(330); l.remove(330) }, kind: Missing, number: 330},
	"delete the first":   {do: func(_ testing.TB, l *lines) { l.remove(1) }, kind: Missing, number: 1},
	"delete the last":    {do: func(_ testing.TB, l *lines) { l.remove(800) }, kind: Truncated, number: 800},
	"insert nonsense":    {do: func(_ testing.TB, l *lines) { l.insert(330, "{}") }, kind: Inserted, number: 330},
	"insert a copy":      {do: func(_ testing.TB, l *lines) { l.insert(330, l.text[328]) }, kind: Inserted, number: 330},
	"insert a later one": {do: func(_ testing.TB, l *lines) { l.insert(330, l.text[399]) }, kind: Inserted, number: 330},
	"insert a forged one": {do: func(_ testing.TB, l *lines) { l.insert(330, strings.Replace(l.text[329], "allow", "deny!", 1)) },
		kind: Inserted, number: 330},
	"insert at the end": {do: func(t testing.TB, l *lines) {
		l.insert(801, l.text[799])
		l.rechained(t, 801)
	}, kind: Inserted, number: 801},
	"reorder":          {do: func(_ testing.TB, l *lines) { l.text[329], l.text[330] = l.text[330], l.text[329] }, kind: Reordered, number: 330},
	"reorder far away": {do: func(_ testing.TB, l *lines) { l.text[329], l.text[599] = l.text[599], l.text[329] }, kind: Reordered, number: 330},
	"reorder the ends": {do: func(_ testing.TB, l *lines) { l.text[0], l.text[799] = l.text[799], l.text[0] }, kind: Reordered, number: 1},
	"swap segments": {do: func(_ testing.TB, l *lines) {
		first, last := l.paths[0], l.paths[len(l.paths)-1]
		for i, path := range l.paths {
			switch path {
			case first:
				l.paths[i] = last
			case last:
				l.paths[i] = first
			}
		}
	}, kind: Reordered, number: 1},
}

func TestTamperingIsNamed(t *testing.T) {
	t.Parallel()
	s := newSample(t)
	report, err := Verify(s.dir, s.public, s.exported)
	must(t, err)
	if report.Problem != nil || report.Records != sampled || report.Checkpoints < 4 {
		t.Fatalf("control: %+v, %v", report, report.Problem)
	}
	for name, c := range tamperings {
		for _, hashes := range []bool{true, false} {
			dir := s.copied(t)
			l := linesOf(t, dir)
			c.do(t, &l)
			l.save(t)
			kind, number := c.kind, c.number
			if !hashes {
				must(t, os.Remove(filepath.Join(dir, hashesName)))
				kind, number = cmp.Or(c.bareKind, kind), cmp.Or(c.bare, number)
			}
			got := verdict(t, dir)
			if got == nil || got.Kind != kind || got.Number != number {
				t.Errorf("%s (hashes stored: %t): %+v; want %s at %d", name, hashes, got, kind, number)
			}
			if c.number < 700 {
				continue // Open reads the last segment
			}
			if _, err := Open(dir, small()); err == nil {
				t.Errorf("%s: the log goes on", name)
			}
		}
	}
}

// verdict is what Verify finds without keys.
func verdict(t testing.TB, dir string) *Problem {
	t.Helper()
	report, err := Verify(dir, nil, nil)
	must(t, err)
	return report.Problem
}

// A log cut at any byte of its last record is found, and Open does not hide it.
func TestTruncationIsNamed(t *testing.T) {
	t.Parallel()
	const records = 40
	dir := sampleLog(t, records)
	l := linesOf(t, dir)
	path, last := l.paths[records-1], len(l.text[records-1])+1
	text, err := os.ReadFile(path)
	must(t, err)
	for left := range last {
		must(t, os.WriteFile(path, text[:len(text)-last+left], 0o600))
		if got := verdict(t, dir); got == nil || got.Kind != Truncated || got.Number != records {
			t.Fatalf("%d of %d bytes are left: %+v", left, last, got)
		}
		if left%50 != 0 {
			continue
		}
		if log, err := Open(dir, small()); err == nil {
			log.Close()
			t.Fatalf("%d of %d bytes are left, and the log goes on", left, last)
		}
	}
	must(t, os.WriteFile(path, text, 0o600))
	if got := verdict(t, dir); got != nil {
		t.Errorf("control: %v", got)
	}
	must(t, os.Remove(path))
	if got := verdict(t, dir); got == nil || got.Kind != Truncated || got.Number != 1 {
		t.Errorf("without its segment: %+v", got)
	}
}

// Older segments under the newer head and checkpoints are found. A whole older copy is sound
// in itself: only what was exported finds it.
func TestRollBackIsNamed(t *testing.T) {
	t.Parallel()
	s := newSample(t)
	older := s.copied(t)
	o := small()
	o.Keys = s.keys
	l := open(t, s.dir, o)
	with(t, l, decision("newer"))
	must(t, l.Close())
	now, err := Export(s.dir, s.keys, new(bytes.Buffer))
	exported := now.Checkpoint
	must(t, err)

	check := func(name, dir string, exported []byte, want *Problem) {
		t.Helper()
		report, err := Verify(dir, s.public, exported)
		must(t, err)
		got := report.Problem
		if (got == nil) != (want == nil) || got != nil && (got.Kind != want.Kind || got.Number != want.Number) {
			t.Errorf("%s: %+v; want %+v", name, got, want)
		}
	}
	gone := &Problem{Kind: Truncated, Number: sampled + 1}
	check("control: the newer one", s.dir, exported, nil)
	check("a whole older copy", older, nil, nil)
	check("a whole older copy with the older checkpoint", older, s.exported, nil)
	check("a whole older copy with the newer checkpoint", older, exported, gone)

	segments := s.copied(t) // the newer one's files beside the older one's segments
	names, err := segmentsOf(older)
	must(t, err)
	for _, name := range names {
		must(t, os.WriteFile(filepath.Join(segments, filepath.Base(name.path)), readFile(t, name.path), 0o600))
	}
	check("older segments", segments, nil, gone)
	heads, err := os.ReadFile(filepath.Join(older, headName))
	must(t, err, os.WriteFile(filepath.Join(segments, headName), heads, 0o600))
	check("older segments and head", segments, nil, gone) // by the stored checkpoints
}

// The signed checkpoints find an attacker who recomputes everything beside the records, but has
// no key; the exported checkpoint finds an attacker who has the key.
func TestARewrittenLogIsFoundByItsCheckpoints(t *testing.T) {
	t.Parallel()
	s := newSample(t)
	dir := s.copied(t)
	l := linesOf(t, dir)
	l.text[299] = strings.Replace(l.text[299], "allow", "deny!", 1)
	l.rechained(t, 301)
	l.save(t)
	rewritten := sampleOf(t, dir, s.keys)
	must(t, os.WriteFile(filepath.Join(rewritten, checkpointsName), readFile(t, filepath.Join(s.dir, checkpointsName)), 0o600))
	report, err := Verify(rewritten, s.public, nil)
	must(t, err)
	if p := report.Problem; p == nil || p.Kind != Rewritten || p.Number < 300 || p.Number > 400 {
		t.Errorf("by its own checkpoints: %+v", report.Problem)
	}
	must(t, os.Remove(filepath.Join(rewritten, checkpointsName)))
	if report, err := Verify(rewritten, s.public, nil); err != nil || report.Problem != nil {
		t.Errorf("control: without checkpoints: %+v, %v", report.Problem, err)
	}
	report, err = Verify(rewritten, s.public, s.exported)
	must(t, err)
	if p := report.Problem; p == nil || p.Kind != Rewritten || p.Number != sampled {
		t.Errorf("by the exported checkpoint: %+v", report.Problem)
	}
}

// sampleOf makes a new log with the entries of the one in dir, as a forger would.
func sampleOf(t *testing.T, dir string, keys *Keys) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "forged")
	l := open(t, to, small())
	for e := range slices.Values(all(t, dir)) {
		must(t, l.Enqueue(e))
	}
	must(t, l.Close())
	return to
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return text
}

// What lies beside the records is damaged or gone.
func TestDamagedFilesBesideTheRecords(t *testing.T) {
	t.Parallel()
	s := newSample(t)
	for _, name := range []string{headName, checkpointsName} {
		dir := s.copied(t)
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("nonsense\n"), 0o600))
		if got := verdict(t, dir); got == nil || got.Kind != Unreadable {
			t.Errorf("%s: %+v", name, got)
		}
	}
	dir := s.copied(t)
	must(t, os.Remove(filepath.Join(dir, headName)))
	if got := verdict(t, dir); got == nil || got.Kind != Unreadable {
		t.Errorf("no head: %+v", got)
	}
	if _, err := Open(dir, small()); err == nil {
		t.Error("a log without its head goes on")
	}
}
