package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"clove.run/clove/agent"
)

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// small has a few hundred records in a segment.
func small() Options { return Options{SegmentBytes: 192 << 10, ReserveBytes: 64 << 10} }

func open(t testing.TB, dir string, options Options) *Log {
	t.Helper()
	l, err := Open(dir, options)
	must(t, err)
	t.Cleanup(func() { l.Close() }) // again is harmless
	return l
}

// with appends one entry and returns its number.
func with(t testing.TB, l *Log, e Entry) uint64 {
	t.Helper()
	number, err := l.Append(e)
	must(t, err)
	return number
}

func decision(what string) Entry {
	return Entry{Kind: KindDecision, Owner: 1000, Run: "0123456789abcdef", What: what, Verdict: VerdictAllow}
}

// all returns the whole log.
func all(t testing.TB, dir string) (entries []Entry) {
	t.Helper()
	must(t, Query(dir, Filter{}, func(e Entry) error { entries = append(entries, e); return nil }))
	return entries
}

// sound fails unless the log verifies with so many records.
func sound(t testing.TB, dir string, records int) Report {
	t.Helper()
	report, err := Verify(dir, nil, nil)
	must(t, err)
	if report.Problem != nil || report.Records != uint64(records) {
		t.Fatalf("%d records, %v; want %d sound ones", report.Records, report.Problem, records)
	}
	return report
}

func TestWhatIsAppendedIsThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	given := Entry{Time: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC), Kind: KindDecision, Owner: 1000, Namespace: "acme/research", Agent: "reader", Run: "0123456789abcdef",
		Principal: PrincipalRun("0123456789abcdef"), Method: "grant.check", What: "net:api.example.com:443", Reason: "one report", Verdict: VerdictDeny, Rule: "g1", Code: "grant",
		Taints: []string{"web", "mail"}, Approval: "a1", Object: "m1 m2", Causation: "c1", Correlation: "c2", Digest: Digest([]byte("{}")), Count: 3, Queue: 17}
	l := open(t, dir, small())
	if number := with(t, l, given); number != 1 {
		t.Errorf("the first record has number %d", number)
	}
	if first, err := l.Append(decision("a"), decision("b")); first != 2 || err != nil {
		t.Errorf("%d, %v", first, err)
	}
	must(t, l.Close())
	l = open(t, dir, small()) // goes on
	if number := with(t, l, decision("c")); number != 4 {
		t.Errorf("number %d after the log was opened again", number)
	}
	must(t, l.Close())
	entries := all(t, dir)
	got := entries[0]
	given.Version, given.Number, given.Prev = Version, 1, got.Prev
	if !reflect.DeepEqual(got, given) {
		t.Errorf("%+v\nwant %+v", got, given)
	}
	if values := reflect.ValueOf(got); len(entries) != 4 {
		t.Errorf("%d records", len(entries))
	} else {
		for i := range values.NumField() { // control: each field was compared
			if values.Field(i).IsZero() {
				t.Errorf("the test gives no %s", values.Type().Field(i).Name)
			}
		}
	}
	sound(t, dir, 4)
}

// One record is one line of printable ASCII, whatever names contain, and reads back as it was
// but for invalid UTF-8.
func TestARecordIsOneLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, small())
	hostile := []string{"a\nb", "\r\n{\"v\":1}\n", "\u2028\u2029\u0085", "\x1b]0;x\x07", "\u009b31m", "\u202e", "\x7f", "\x00", `"\`, "😀", "plain ä"}
	for _, text := range hostile {
		with(t, l, Entry{Kind: KindDecision, Agent: text, What: text, Taints: []string{text}})
	}
	with(t, l, decision("\xff\xfe"))
	with(t, l, decision(strings.Repeat("ä", 300)))
	with(t, l, decision(strings.Repeat("\x01\xff", 4000)))
	with(t, l, Entry{Kind: KindDecision, Taints: make([]string, 100)})
	must(t, l.Close())
	text, err := os.ReadFile(filepath.Join(dir, segmentName(1)))
	must(t, err)
	if lines := strings.Count(string(text), "\n"); lines != len(hostile)+4 {
		t.Errorf("%d lines", lines)
	}
	if i := strings.IndexFunc(string(text), func(r rune) bool { return r != '\n' && (r < ' ' || r > '~') }); i >= 0 {
		t.Errorf("%q at byte %d", text[i], i)
	}
	entries := all(t, dir)
	for i, text := range hostile {
		if e := entries[i]; e.What != text || e.Agent != text || e.Taints[0] != text {
			t.Errorf("%q became %q", text, e.What)
		}
	}
	rest := entries[len(hostile):]
	if rest[0].What != "\uFFFD" || len(rest[1].What) > whatMax || !strings.HasSuffix(rest[1].What, "ä…") || len(rest[2].What) > whatMax || len(rest[3].Taints) != taintsMax {
		t.Errorf("%q, %q, %d bytes, %d taints", rest[0].What, rest[1].What, len(rest[2].What), len(rest[3].Taints))
	}
}

// The largest entry that there can be fits into a line.
func TestTheLargestEntryFits(t *testing.T) {
	t.Parallel()
	wide := strings.Repeat("\x01", 1000)
	e := Entry{Kind: Kind(wide), Namespace: wide, Agent: wide, Run: agent.ID(wide), Principal: wide, Method: wide, What: wide, Reason: wide, Verdict: wide, Rule: wide, Code: wide,
		Taints: slices.Repeat([]string{wide}, 100), Approval: wide, Causation: wide, Correlation: wide, Digest: wide, Time: time.Now()}
	dir := t.TempDir()
	l := open(t, dir, Options{SegmentBytes: 1 << 20})
	with(t, l, e)
	must(t, l.Close())
	sound(t, dir, 1)
}

func TestEnqueuedEntriesAreWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, small())
	must(t, l.Enqueue(decision("queued")))
	for deadline := time.Now().Add(time.Minute); len(all(t, dir)) == 0; {
		if time.Now().After(deadline) {
			t.Fatal("it is not written")
		}
		time.Sleep(time.Millisecond) // a deadline of the clock's is what is tested
	}
	// An Append takes along what waits, in the order of the calls.
	must(t, l.Enqueue(decision("before")))
	with(t, l, decision("behind"))
	if entries := all(t, dir); entries[1].What != "before" || entries[2].What != "behind" {
		t.Errorf("%q, %q", entries[1].What, entries[2].What)
	}
	must(t, l.Enqueue(decision("last")), l.Close())
	if err := l.Enqueue(decision("late")); err == nil {
		t.Error("a closed log takes entries")
	}
	if _, err := l.Append(decision("late")); err == nil {
		t.Error("a closed log takes entries")
	}
	sound(t, dir, 4)
}

// Many callers share commits; everybody's entries are there once, in segments without a gap.
func TestManyCallersAndSegments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, small())
	const callers, each = 16, 60
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() {
			for i := range each {
				what := fmt.Sprintf("%d.%d", caller, i)
				number, err := l.Append(decision(what))
				if err == nil && i%10 == 0 {
					err = l.Enqueue(decision("queued " + what))
				}
				if err != nil || number == 0 {
					t.Errorf("%s: %d, %v", what, number, err)
				}
			}
		})
	}
	group.Wait()
	must(t, l.Close())
	sound(t, dir, callers*each*11/10)
	if segments, err := segmentsOf(dir); err != nil || len(segments) < 2 {
		t.Errorf("control: %d segments, %v", len(segments), err)
	}
	seen := map[string]int{}
	for _, e := range all(t, dir) {
		seen[e.What]++
	}
	if len(seen) != callers*each*11/10 {
		t.Errorf("%d different entries", len(seen))
	}
}

func TestALogHasOneWriter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, small())
	if _, err := Open(dir, small()); agent.KindOf(err) != agent.KindBusy {
		t.Errorf("a second writer: %v", err)
	}
	must(t, l.Close())
	must(t, open(t, dir, small()).Close())
}

// A log of which the hashes were removed makes them again from the segments.
func TestHashesAreRebuilt(t *testing.T) {
	t.Parallel()
	dir := sampleLog(t, 500)
	before, err := os.ReadFile(filepath.Join(dir, hashesName))
	must(t, err, os.Remove(filepath.Join(dir, hashesName)), open(t, dir, small()).Close())
	after, err := os.ReadFile(filepath.Join(dir, hashesName))
	if err != nil || !slices.Equal(before, after) {
		t.Errorf("%d bytes, before %d, %v", len(after), len(before), err)
	}
	sound(t, dir, 500)
}

// sampleLog is a closed log of so many records in several segments.
func sampleLog(t testing.TB, records int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "audit")
	l := open(t, dir, small())
	for at := 0; at < records; {
		var batch []Entry
		for range min(appendMax/4, records-at) {
			at++
			batch = append(batch, decision(fmt.Sprintf("what %d", at)))
		}
		_, err := l.Append(batch...)
		must(t, err)
	}
	must(t, l.Close())
	return dir
}

// A caller that has the answer finds its record: a query reads up to State's number.
func TestStateHasWhatAppendHasReturned(t *testing.T) {
	t.Parallel()
	l := open(t, t.TempDir(), Options{})
	for range 1000 {
		number := with(t, l, decision("done"))
		if state := l.State(); state.Records < number {
			t.Fatalf("record %d is written, and the state has %d", number, state.Records)
		}
	}
}
