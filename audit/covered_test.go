package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// long is a sound log of more records than can be without a checkpoint, which is signed as
// often as the host's.
func long(t *testing.T) sample {
	t.Helper()
	root := t.TempDir()
	keys, err := OpenKeys(filepath.Join(root, "keys"))
	must(t, err)
	s := sample{dir: filepath.Join(root, "audit"), keys: keys}
	s.public, err = keys.Public()
	must(t, err)
	s.extend(t, longRecords)
	return s
}

const longRecords = 5000

func (s sample) extend(t *testing.T, records int) {
	t.Helper()
	l := open(t, s.dir, Options{Keys: s.keys, SegmentBytes: 1 << 20})
	for at := 0; at < records; at += 250 {
		var batch []Entry
		for i := range 250 {
			batch = append(batch, decision(fmt.Sprintf("what %d", at+i)))
		}
		_, err := l.Append(batch...)
		must(t, err)
	}
	must(t, l.Close())
}

// rewritten is a whole new log that differs in one record, as root without the key can make
// it: records, hashes and head are as a writer makes them, and the checkpoints are the old ones.
func (s sample) rewritten(t *testing.T, changed int) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "forged")
	l := open(t, to, Options{SegmentBytes: 1 << 20})
	entries := all(t, s.dir)
	entries[changed-1].Verdict = VerdictDeny
	for len(entries) > 0 {
		_, err := l.Append(entries[:250]...)
		must(t, err)
		entries = entries[250:]
	}
	must(t, l.Close(), os.WriteFile(filepath.Join(to, checkpointsName), readFile(t, filepath.Join(s.dir, checkpointsName)), 0o600))
	return to
}

// A log that was rewritten without the key is a finding whatever became of the checkpoints,
// and nothing signs it: not the next writer, Export or Prove. Only a change behind the newest
// checkpoint that is left, of no more records than can be without one, is not found; it is the
// control.
func TestARewrittenLogIsUncovered(t *testing.T) {
	t.Parallel()
	s := long(t)
	s.wants(t, s.dir, nil, "", 0)
	for name, c := range map[string]struct {
		changed int
		do      func(t *testing.T, checkpoints string)
		kind    Damage
		number  uint64
	}{
		"kept":                    {changed: 1500, do: func(*testing.T, string) {}, kind: Rewritten, number: 2500},
		"removed":                 {changed: 1500, do: func(t *testing.T, path string) { must(t, os.Remove(path)) }, kind: Uncovered, number: 1},
		"emptied":                 {changed: 1500, do: func(t *testing.T, path string) { must(t, os.Truncate(path, 0)) }, kind: Uncovered, number: 1},
		"cut before the change":   {changed: 2500, do: cutTo(2000), kind: Uncovered, number: 1251},
		"forged":                  {changed: 1500, do: forgeCheckpoint, kind: Unreadable},
		"control: a short change": {changed: 4500, do: cutTo(4000)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := s.rewritten(t, c.changed)
			c.do(t, filepath.Join(dir, checkpointsName))
			for _, closed := range []bool{true, false} {
				if !closed {
					setOpen(t, dir)
				}
				report := s.wants(t, dir, nil, c.kind, c.number)
				if want := fmt.Sprintf("uncovered: records %d to %d", c.number, longRecords); c.kind == Uncovered && (report.Problem == nil || !strings.Contains(report.Problem.Error(), want)) {
					t.Error(report.Problem)
				}
			}
			_, exported := Export(dir, s.keys, new(bytes.Buffer))
			_, proved := Prove(dir, s.keys, 1)
			l, opened := Open(dir, Options{Keys: s.keys, SegmentBytes: 1 << 20})
			if opened == nil {
				must(t, l.Close())
			}
			for did, err := range map[string]error{"exported": exported, "proved": proved, "opened": opened} {
				if kind := kindOf(t, err); kind != c.kind {
					t.Errorf("%s: %v", did, err)
				}
			}
		})
	}
}

// cutTo keeps only the checkpoints of so many records.
func cutTo(most uint64) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		t.Helper()
		saved, err := savedCheckpoints(path)
		must(t, err)
		var text []byte
		for _, c := range saved {
			if c.Size <= most {
				line, err := json.Marshal(c)
				must(t, err)
				text = append(append(text, line...), '\n')
			}
		}
		if len(text) == 0 {
			t.Fatal("control: no checkpoint is left")
		}
		must(t, os.WriteFile(path, text, 0o600))
	}
}

// forgeCheckpoint leaves one that another key signed.
func forgeCheckpoint(t *testing.T, path string) {
	t.Helper()
	keys, err := OpenKeys(t.TempDir())
	must(t, err)
	signed, err := keys.signCheckpoint(longRecords, [32]byte{})
	must(t, err)
	line, err := json.Marshal(savedCheckpoint{Size: longRecords, Note: string(signed)})
	must(t, err, os.WriteFile(path, append(line, '\n'), 0o600))
}

// A file of records without its checkpoint proves nothing about them.
func TestAnExportWithoutItsCheckpointIsUncovered(t *testing.T) {
	t.Parallel()
	s := long(t)
	var text bytes.Buffer
	exported, err := Export(s.dir, s.keys, &text)
	must(t, err)
	file := filepath.Join(t.TempDir(), "export")
	must(t, os.WriteFile(file, text.Bytes(), 0o600))
	s.wants(t, file, exported.Checkpoint, "", 0)
	s.wants(t, file, nil, Uncovered, 1)
}

// However many entries one commit has, a checkpoint follows within what can be without one.
func TestACommitOfManyIsSignedInParts(t *testing.T) {
	t.Parallel()
	s := long(t)
	l := open(t, s.dir, Options{Keys: s.keys, SegmentBytes: 4 << 20, FloodBurst: queueMax})
	for i := range 6000 {
		must(t, l.Enqueue(decision(fmt.Sprintf("many %d", i))))
	}
	must(t, l.Close())
	saved, err := savedCheckpoints(filepath.Join(s.dir, checkpointsName))
	must(t, err)
	before := uint64(0)
	for _, c := range saved {
		if c.Size-before > uncoveredMax {
			t.Errorf("%d records between two checkpoints", c.Size-before)
		}
		before = c.Size
	}
	if before < longRecords+6000 {
		t.Errorf("%d records are covered", before)
	}
}
