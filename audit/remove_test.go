package audit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
)

// options are those of a sample's log.
func (s sample) options() Options {
	o := small()
	o.Keys, o.CheckpointRecords = s.keys, 100
	return o
}

// removed is a copy of a sample of which the older segments were removed, and the number of
// the last removed record.
func (s sample) removed(t testing.TB) (dir string, removed uint64) {
	t.Helper()
	dir = s.copied(t)
	l := open(t, dir, s.options())
	removed, err := l.Remove(Keep{Bytes: 1})
	must(t, err, l.Close())
	if removed == 0 || removed >= sampled {
		t.Fatalf("control: %d records are removed", removed)
	}
	return dir, removed
}

// wants verifies and compares the damage; empty: none.
func (s sample) wants(t testing.TB, path string, exported []byte, kind Damage, number uint64) Report {
	t.Helper()
	report, err := Verify(path, s.public, exported)
	must(t, err)
	if p := report.Problem; p == nil && kind != "" || p != nil && (p.Kind != kind || p.Number != number) {
		t.Errorf("%v, want %s of %d", p, kind, number)
	}
	return report
}

// What is left after a removal verifies, agrees with checkpoints from before it, goes on, can
// be proved and exported.
func TestARemovalLeavesTheRestProvable(t *testing.T) {
	t.Parallel()
	s := newSample(t)
	dir, removed := s.removed(t)
	report := s.wants(t, dir, s.exported, "", 0)
	if report.Removed != removed || report.Records != sampled+1 || report.Checkpoints < 2 {
		t.Errorf("%+v", report)
	}
	entries := all(t, dir)
	if first, last := entries[0], entries[len(entries)-1]; first.Number != removed+1 || last.Kind != KindRemove || last.Count != removed {
		t.Errorf("%+v … %+v", first, last)
	}
	saved, err := savedCheckpoints(filepath.Join(s.dir, checkpointsName))
	must(t, err)
	s.wants(t, dir, []byte(saved[0].Note), "", 0) // of a tree that ends in what was removed
	l := open(t, dir, s.options())
	with(t, l, decision("goes on"))
	must(t, l.Close())
	s.wants(t, dir, s.exported, "", 0)
	for number, found := range map[uint64]bool{removed: false, removed + 1: true, sampled + 2: true} {
		proof, err := Prove(dir, s.keys, number)
		if found {
			must(t, err)
			_, err = VerifyProof(proof, s.public)
			must(t, err)
		} else if agent.KindOf(err) != agent.KindNotFound {
			t.Errorf("record %d: %v", number, err)
		}
	}
	var text bytes.Buffer
	exported, err := Export(dir, s.keys, &text)
	must(t, err)
	file := filepath.Join(t.TempDir(), "out.jsonl")
	must(t, os.WriteFile(file, text.Bytes(), 0o600), os.WriteFile(file+".begin", exported.Begin, 0o600))
	s.wants(t, file, exported.Checkpoint, "", 0)
	must(t, os.Remove(file+".begin"))
	s.wants(t, file, exported.Checkpoint, Missing, 1)
}

// A log of which the hashes were lost goes on behind what was removed.
func TestHashesAreRebuiltBehindARemoval(t *testing.T) {
	t.Parallel()
	s := newSample(t)
	dir, _ := s.removed(t)
	must(t, os.Remove(filepath.Join(dir, hashesName)))
	l := open(t, dir, s.options())
	with(t, l, decision("goes on"))
	must(t, l.Close())
	s.wants(t, dir, s.exported, "", 0)
	saved, err := savedCheckpoints(filepath.Join(s.dir, checkpointsName))
	must(t, err)
	s.wants(t, dir, []byte(saved[0].Note), Unreadable, 0) // nothing leads from there to here any more
}

// Removing the beginning by hand, or changing where it is, is found.
func TestARemovalCannotBeForged(t *testing.T) {
	t.Parallel()
	s := newSample(t)
	segments, err := segmentsOf(s.dir)
	must(t, err)
	for name, test := range map[string]struct {
		do     func(dir, begin string) error
		kind   Damage
		number uint64
	}{
		"control":            {do: func(string, string) error { return nil }},
		"the note is gone":   {do: func(_, begin string) error { return os.Remove(begin) }, kind: Missing, number: 1},
		"the note is edited": {do: func(_, begin string) error { return edit(begin, "\nhash ", "\nhash A") }, kind: Unreadable},
		"its root is edited": {do: func(_, begin string) error { return edit(begin, "\n", "\n1") }, kind: Unreadable},
		"it is a checkpoint": {do: func(_, begin string) error { return os.WriteFile(begin, s.exported, 0o600) }, kind: Unreadable},
		"another key's":      {do: func(_, begin string) error { return foreignAnchor(t, begin) }, kind: Unreadable},
		"one segment is left": {do: func(dir, _ string) error {
			return os.Link(segments[0].path, filepath.Join(dir, filepath.Base(segments[0].path)))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, _ := s.removed(t)
			must(t, test.do(dir, anchorPath(dir, true)))
			s.wants(t, dir, nil, test.kind, test.number)
		})
	}
	dir := s.copied(t)
	must(t, os.Remove(filepath.Join(dir, filepath.Base(segments[0].path))))
	s.wants(t, dir, nil, Missing, 1)
}

func edit(path, from, to string) error {
	text, err := os.ReadFile(path)
	return errors.Join(err, os.WriteFile(path, []byte(strings.Replace(string(text), from, to, 1)), 0o600))
}

// foreignAnchor signs the note at path with a key of its own.
func foreignAnchor(t *testing.T, path string) error {
	keys, err := OpenKeys(t.TempDir())
	must(t, err)
	a, err := anchored(path)
	must(t, err)
	signed, err := keys.signAnchor(a)
	return errors.Join(err, os.WriteFile(path, signed, 0o600))
}

// A damaged log keeps everything.
func TestADamagedLogIsNotRemoved(t *testing.T) {
	t.Parallel()
	s := newSample(t)
	dir := s.copied(t)
	segments, err := segmentsOf(dir)
	must(t, err, edit(segments[0].path, "what 7", "what 8"))
	l := open(t, dir, s.options())
	var problem *Problem
	if _, err := l.Remove(Keep{Bytes: 1}); !errors.As(err, &problem) || problem.Kind != Edited {
		t.Errorf("%v", err)
	}
	if left, err := segmentsOf(dir); err != nil || len(left) != len(segments) {
		t.Errorf("%d of %d segments, %v", len(left), len(segments), err)
	}
}

// What a kill between the note and the last segment left is removed the next time, with the
// logs of the runs that are linked there.
func TestARemovalIsCompleted(t *testing.T) {
	t.Parallel()
	s := newSample(t)
	l := open(t, s.dir, s.options())
	run := agent.NewID()
	own := open(t, RunDir(s.dir, run), RunOptions())
	with(t, own, decision("its own"))
	must(t, own.Close(), l.Link(run, 1000))
	for range 3 * sampled {
		_, err := l.Append(slices.Repeat([]Entry{decision("more")}, 10)...)
		must(t, err)
		if segments, err := segmentsOf(s.dir); err != nil || len(segments) > 5 {
			break
		}
	}
	linked := filepath.Join(s.dir, linkedName, string(run))
	if _, err := os.Stat(linked); err != nil {
		t.Fatal("control: ", err)
	}
	before := s.copied(t)
	_, err := l.Remove(Keep{Bytes: 1})
	must(t, err)
	if _, err := os.Stat(linked); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the log of the run is left: %v", err)
	}
	segments, err := segmentsOf(before)
	must(t, err, os.Link(segments[0].path, filepath.Join(s.dir, filepath.Base(segments[0].path))))
	_, err = l.Remove(Keep{Bytes: 1 << 40})
	must(t, err, l.Close())
	if left, err := segmentsOf(s.dir); err != nil || len(left) != 1 {
		t.Errorf("%d segments, %v", len(left), err)
	}
	s.wants(t, s.dir, nil, "", 0)
}

// The oldest segments beyond the size go, and those whose last record is too old; the one in
// use stays.
func TestWhatIsKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Now()
	var segments []segment
	for i := range 5 { // of 100 bytes; the last one is new, the one before a day old, and so on
		s := segment{filepath.Join(dir, fmt.Sprint(i)), uint64(i)}
		written := now.Add(time.Duration(i-4) * 24 * time.Hour)
		must(t, os.WriteFile(s.path, make([]byte, 100), 0o600), os.Chtimes(s.path, written, written))
		segments = append(segments, s)
	}
	for keep, want := range map[Keep]int{
		{}:                         0,
		{Bytes: 500}:               0,
		{Bytes: 499}:               1,
		{Bytes: 1}:                 4,
		{Age: 100 * time.Hour}:     0,
		{Age: 36 * time.Hour}:      3,
		{Age: 1}:                   4,
		{Bytes: 250, Age: 1 << 62}: 3,
	} {
		if got, err := keep.excess(segments, now); got != want || err != nil {
			t.Errorf("%+v: %d, %v, want %d", keep, got, err, want)
		}
	}
}

// Verify, Query and Follow's reading may run while records are written and removed.
func TestReadingBesideRemovals(t *testing.T) {
	t.Parallel()
	s := newSample(t)
	dir := s.copied(t)
	l := open(t, dir, s.options())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 150 {
			if _, err := l.Append(slices.Repeat([]Entry{decision("more")}, 50)...); err != nil {
				t.Error(err)
			}
			if _, err := l.Remove(Keep{Bytes: 400 << 10}); err != nil {
				t.Error(err)
			}
		}
	}()
	for rounds := 0; ; rounds++ {
		report := s.wants(t, dir, nil, "", 0)
		must(t, Query(dir, Filter{Last: 1000}, func(Entry) error { return nil }))
		page, err := ReadPage(dir, Filter{}, 10, 1000)
		if err != nil || len(page.Entries) == 0 && page.Next == 0 {
			t.Errorf("%+v, %v", page, err)
		}
		select {
		case <-done:
			if rounds == 0 || report.Removed == 0 {
				t.Errorf("control: %d rounds, %+v", rounds, report)
			}
			return
		default:
		}
	}
}
