package audit

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// forged is a line that follows the log's last one as a record of it would.
func forged(t testing.TB, l lines) string {
	t.Helper()
	last, err := parse([]byte(l.text[len(l.text)-1]))
	must(t, err)
	line, _, err := decision("forged").line(last.Number+1, last.hash)
	must(t, err)
	return string(line)
}

func appended(t testing.TB, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	must(t, err)
	_, err = file.WriteString(text)
	must(t, err, file.Close())
}

// Lines behind the head are shown by nothing, and Query and Verify name them: of a closed log,
// and of one whose writer was killed; in its last segment and in one more; sound ones, copies of records, and parts. The control is the log before.
func TestLinesBehindTheHeadAreNoRecords(t *testing.T) {
	t.Parallel()
	const records = 40
	states := map[string]func(*testing.T) string{
		"closed": func(t *testing.T) string { return sampleLog(t, records) },
		"killed": func(t *testing.T) string {
			dir := sampleLog(t, records)
			setOpen(t, dir)
			return dir
		},
	}
	added := map[string]func(lines) (name, text string){
		"a sound line":    func(l lines) (string, string) { return "", forged(t, l) },
		"a copy":          func(l lines) (string, string) { return "", l.text[3] + "\n" },
		"nonsense":        func(lines) (string, string) { return "", "{}\n" },
		"a part":          func(l lines) (string, string) { return "", l.text[3] },
		"a later segment": func(l lines) (string, string) { return segmentName(records + 1), forged(t, l) },
	}
	for state, make := range states {
		for what, add := range added {
			t.Run(state+", "+what, func(t *testing.T) {
				t.Parallel()
				dir := make(t)
				shown(t, dir, records, "")
				l := linesOf(t, dir)
				name, text := add(l)
				appended(t, cmp.Or(optional(dir, name), l.paths[records-1]), text)
				shown(t, dir, records, Inserted)
			})
		}
	}
}

// Beside a writer, which is waited for, it is the same.
func TestALineThatIsNotTheWriters(t *testing.T) {
	t.Parallel()
	dir := sampleLog(t, 40)
	l := open(t, dir, small())
	lines := linesOf(t, dir)
	appended(t, lines.paths[39], forged(t, lines))
	if err := Query(dir, Filter{}, hasForged); kindOf(t, err) != Inserted {
		t.Error(err)
	}
	if got := verdict(t, dir); got == nil || got.Kind != Inserted || got.Number != 41 {
		t.Error(got)
	}
	with(t, l, decision("writes over it"))
	must(t, l.Close())
	sound(t, dir, 41)
}

func optional(dir, name string) string {
	if name == "" {
		return ""
	}
	return filepath.Join(dir, name)
}

// setOpen marks a closed log as one whose writer was killed in this boot.
func setOpen(t *testing.T, dir string) {
	t.Helper()
	boot, err := bootID()
	must(t, err)
	changeHead(t, dir, func(h *head) { h.closed, h.boot = false, boot })
}

// shown fails unless every way to read shows the first so many records and nothing else, and
// those that say what is wrong say want.
func shown(t *testing.T, dir string, records int, want Damage) {
	t.Helper()
	for name, filter := range map[string]Filter{"query": {}, "query --last": {Last: 5}, "query --after": {After: 30}} {
		var last uint64
		err := Query(dir, filter, func(e Entry) error { last = max(last, e.Number); return hasForged(e) })
		if found := kindOf(t, err); last != uint64(records) || found != want {
			t.Errorf("%s: the last is %d; %v", name, last, err)
		}
	}
	page, err := ReadPage(dir, Filter{}, 1000, 1000)
	if must(t, err); len(page.Entries) != records || slices.ContainsFunc(page.Entries, func(e Entry) bool { return hasForged(e) != nil }) {
		t.Errorf("a page has %d records", len(page.Entries))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	var followed uint64
	err = Follow(ctx, dir, Filter{}, func(e Entry) error { followed++; return hasForged(e) })
	if followed != uint64(records) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a follower sees %d records; %v", followed, err)
	}
	report, err := Verify(dir, nil, nil)
	must(t, err)
	if p := report.Problem; (p == nil) != (want == "") || p != nil && (p.Kind != want || p.Number != uint64(records+1)) {
		t.Errorf("verify: %v", p)
	}
}

func hasForged(e Entry) error {
	if e.What == "forged" {
		return errors.New("a forged line is shown")
	}
	return nil
}

func kindOf(t *testing.T, err error) Damage {
	t.Helper()
	var p *Problem
	if errors.As(err, &p) {
		return p.Kind
	}
	must(t, err)
	return ""
}

// A log whose writer was killed goes on without the lines behind its head, and says that it
// was cut off; a closed one does not go on. After a halt of the host the head may be older
// than what was acknowledged: then the sound lines stay, and the log says that too.
func TestOpenAdoptsNothingOfThisBoot(t *testing.T) {
	t.Parallel()
	const records = 40
	for name, c := range map[string]struct {
		prepare func(*testing.T, string)
		records int // with the gap; 0: it does not open
		says    string
	}{
		"closed":  {prepare: func(*testing.T, string) {}},
		"killed":  {prepare: setOpen, records: records + 1, says: "were cut off"},
		"stopped": {prepare: func(t *testing.T, dir string) { setOpen(t, dir); setBoot(t, dir, "another") }, records: records + 2, says: "records 41 to 41 stood behind the stored head"},
		"one more": {prepare: func(t *testing.T, dir string) {
			setOpen(t, dir)
			appended(t, filepath.Join(dir, segmentName(records+2)), "")
		}},
	} {
		dir := sampleLog(t, records)
		l := linesOf(t, dir)
		appended(t, l.paths[records-1], forged(t, l))
		c.prepare(t, dir)
		log, err := Open(dir, small())
		if c.records == 0 {
			if kind := kindOf(t, err); kind != Inserted && kind != Truncated {
				t.Errorf("%s: it goes on: %v", name, err)
			}
			continue
		}
		must(t, err, log.Close())
		entries := all(t, dir)
		if gap := entries[len(entries)-1]; len(entries) != c.records || gap.Kind != KindGap || !strings.Contains(gap.What, c.says) {
			t.Errorf("%s: %d records, %+v", name, len(entries), gap)
		}
		sound(t, dir, c.records)
	}
}

// Readers beside a busy writer wait for the head, and find nothing wrong.
func TestReadersBesideAWriter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, small())
	done := make(chan error, 1)
	go func() {
		var err error
		for i := 0; i < 300 && err == nil; i++ {
			_, err = l.Append(decision("busy"), decision("busy"))
		}
		done <- err
	}()
	for reads := 0; ; reads++ {
		select {
		case err := <-done:
			must(t, err)
			if reads < 3 {
				t.Errorf("control: %d reads", reads)
			}
			return
		default:
		}
		must(t, Query(dir, Filter{}, func(Entry) error { return nil }))
		report, err := Verify(dir, nil, nil)
		if must(t, err); report.Problem != nil {
			t.Fatal(report.Problem)
		}
	}
}
