package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
)

func TestExportAndProofAreVerifiedOffline(t *testing.T) {
	t.Parallel()
	s := newSample(t)
	var text bytes.Buffer
	exported, err := Export(s.dir, s.keys, &text)
	signed, records := exported.Checkpoint, exported.Last
	must(t, err)
	file := filepath.Join(t.TempDir(), "export")
	must(t, os.WriteFile(file, text.Bytes(), 0o600))
	report, err := Verify(file, s.public, signed)
	if err != nil || report.Problem != nil || report.Records != records || report.Checkpoints != 1 {
		t.Errorf("%+v, %v", report, err)
	}
	must(t, os.WriteFile(file, bytes.Replace(text.Bytes(), []byte("allow"), []byte("deny!"), 1), 0o600))
	if report, err := Verify(file, s.public, signed); err != nil || report.Problem == nil || report.Problem.Number != 1 {
		t.Errorf("an edited export: %+v, %v", report, err)
	}
	for _, number := range []uint64{1, 2, 511, 512, 513, sampled} {
		proof, err := Prove(s.dir, s.keys, number)
		must(t, err)
		stored, err := json.Marshal(proof)
		must(t, err)
		var read Proof
		must(t, json.Unmarshal(stored, &read))
		if e, err := VerifyProof(read, s.public); err != nil || e.Number != number {
			t.Errorf("%d: %+v, %v", number, e, err)
		}
		read.Record = strings.Replace(read.Record, "allow", "deny!", 1)
		if _, err := VerifyProof(read, s.public); err == nil {
			t.Errorf("%d: an edited record is proved", number)
		}
	}
	if _, err := Prove(s.dir, s.keys, sampled+1); agent.KindOf(err) != agent.KindNotFound {
		t.Errorf("a record that is not there: %v", err)
	}
	strange, err := OpenKeys(filepath.Join(t.TempDir(), "keys"))
	must(t, err)
	others, err := strange.Public()
	must(t, err)
	proof, err := Prove(s.dir, s.keys, 1)
	must(t, err)
	if _, err := VerifyProof(proof, others); err == nil {
		t.Error("a proof is good with another key")
	}
	if report, err := Verify(s.dir, others, nil); err != nil || report.Problem == nil {
		t.Errorf("a log is good with another key: %+v, %v", report, err)
	}
}

func TestKeysAreRootsAlone(t *testing.T) {
	t.Parallel()
	s := newSample(t)
	for name, mode := range map[string]os.FileMode{"": 0o700, currentName: 0o600} {
		if info, err := os.Stat(s.keys.path(name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%q: %v, %v", name, info.Mode(), err)
		}
	}
	again, err := OpenKeys(s.keys.dir)
	must(t, err)
	if public, err := again.Public(); err != nil || !slices.Equal(public, s.public) {
		t.Errorf("the key changed: %q, %v", public, err)
	}
}

const someRun, otherRun = agent.ID("00000000000000aa"), agent.ID("00000000000000bb")

func TestLinkedRunsAreCovered(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	host := open(t, dir, small())
	for _, run := range []agent.ID{someRun, otherRun} {
		own := open(t, RunDir(dir, run), RunOptions())
		if run == someRun {
			if err := host.Link(run, 0); agent.KindOf(err) != agent.KindBusy {
				t.Errorf("a live run is linked: %v", err)
			}
		}
		for range 3 {
			with(t, own, decision("by itself"))
		}
		must(t, own.Close())
	}
	if runs, err := Unlinked(dir); err != nil || len(runs) != 2 {
		t.Errorf("%q, %v", runs, err)
	}
	must(t, host.Link(someRun, 1000), host.Close())
	if report := sound(t, dir, 1); report.Runs != 2 {
		t.Errorf("%+v", report)
	}
	link := all(t, dir)[0]
	if link.Kind != KindLink || link.Run != someRun || link.Count != 3 || link.Owner != 1000 || len(link.Digest) != 64 {
		t.Errorf("%+v", link)
	}
	if runs, err := Unlinked(dir); err != nil || !slices.Equal(runs, []agent.ID{otherRun}) {
		t.Errorf("%q, %v", runs, err)
	}
	for _, where := range []string{filepath.Join(dir, linkedName, string(someRun)), RunDir(dir, otherRun)} {
		path := filepath.Join(where, segmentName(1))
		text := readFile(t, path)
		must(t, os.WriteFile(path, bytes.Replace(text, []byte("allow"), []byte("deny!"), 1), 0o600))
		if got := verdict(t, dir); got == nil || got.Kind != Edited || got.Number != 1 || string(got.Run) != filepath.Base(where) {
			t.Errorf("%s: %+v", where, got)
		}
		must(t, os.WriteFile(path, text, 0o600))
	}
	must(t, os.RemoveAll(filepath.Join(dir, linkedName, string(someRun))))
	if got := verdict(t, dir); got == nil || got.Kind != Missing || got.Run != someRun {
		t.Errorf("it was removed: %+v", got)
	}
}

func TestQuery(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, small())
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 400 {
		e := Entry{Kind: KindDecision, Owner: uint32(1000 + i%2), Namespace: []string{"acme", "acme/research", "acmeter", ""}[i%4], Run: someRun, What: strings.Repeat("w", 200),
			Verdict: VerdictAllow, Time: begin.Add(time.Duration(i) * time.Minute)}
		if i%100 == 7 {
			e.Kind, e.Run, e.Verdict, e.What = KindStart, otherRun, VerdictDeny, "needle"
		}
		must(t, l.Enqueue(e))
	}
	must(t, l.Close())
	if segments, err := segmentsOf(dir); err != nil || len(segments) < 2 {
		t.Fatalf("control: %d segments, %v", len(segments), err)
	}
	owner := uint32(1001)
	for name, c := range map[string]struct {
		filter Filter
		want   int
		first  uint64
	}{
		"all":          {Filter{}, 400, 1},
		"owner":        {Filter{Owner: &owner}, 200, 2},
		"namespace":    {Filter{Namespace: "acme"}, 200, 1},
		"below":        {Filter{Namespace: "acme/research"}, 100, 2},
		"view":         {Filter{Owner: &owner, Namespace: "acme"}, 100, 2},
		"run":          {Filter{Run: otherRun}, 4, 8},
		"kind":         {Filter{Kind: KindStart}, 4, 8},
		"verdict":      {Filter{Verdict: VerdictDeny}, 4, 8},
		"text":         {Filter{Text: "needle"}, 4, 8},
		"since":        {Filter{Since: begin.Add(390 * time.Minute)}, 10, 391},
		"until":        {Filter{Until: begin.Add(10 * time.Minute)}, 10, 1},
		"after":        {Filter{After: 399}, 1, 400},
		"behind":       {Filter{After: 1000}, 0, 0},
		"last":         {Filter{Last: 3}, 3, 398},
		"last denials": {Filter{Last: 2, Verdict: VerdictDeny}, 2, 208},
		"last of few":  {Filter{Last: 9, Verdict: VerdictDeny}, 4, 8},
	} {
		var got []uint64
		must(t, Query(dir, c.filter, func(e Entry) error { got = append(got, e.Number); return nil }))
		if len(got) != c.want || !slices.IsSorted(got) || len(got) > 0 && got[0] != c.first {
			t.Errorf("%s: %d records: %v", name, len(got), got)
		}
	}
	failed := errors.New("failed")
	if err := Query(dir, Filter{}, func(Entry) error { return failed }); err != failed {
		t.Errorf("%v", err)
	}
}

// A follower sees each record once, over segments, as they are written.
func TestFollow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, small())
	with(t, l, decision("before"))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	seen := make(chan uint64, 1000)
	ended := make(chan error, 1)
	go func() { ended <- Follow(ctx, dir, Filter{}, func(e Entry) error { seen <- e.Number; return nil }) }()
	if got := <-seen; got != 1 {
		t.Fatalf("record %d", got)
	}
	for number := uint64(2); number < 200; number++ {
		with(t, l, decision(strings.Repeat("long ", 100)))
		if got := <-seen; got != number {
			t.Fatalf("record %d, not %d", got, number)
		}
	}
	if segments, err := segmentsOf(dir); err != nil || len(segments) < 2 {
		t.Errorf("control: %d segments, %v", len(segments), err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
