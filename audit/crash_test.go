package audit

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// roleVariable makes this test binary a writer of the log in its argument, which prints each
// number that was acknowledged until it is killed.
const roleVariable = "CLOVE_AUDIT_TEST_WRITER"

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) != "" {
		fmt.Fprintln(os.Stderr, writeForEver(os.Args[1]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func writeForEver(dir string) error {
	l, err := Open(dir, small())
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		what := fmt.Sprintf("%d.%d", os.Getpid(), i)
		if err := l.Enqueue(decision("queued " + what)); err != nil {
			return err
		}
		number, err := l.Append(decision(what), decision(what))
		if err != nil {
			return err
		}
		fmt.Println(number, what)
		if err := l.Enqueue(decision("queued behind " + what)); err != nil {
			return err
		}
	}
}

// Nothing that was acknowledged is lost when the writer is killed, the chain is sound, and a
// gap is recorded where entries were in memory only.
func TestKilledWriter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	acknowledged := map[uint64]string{}
	for kill := range 10 {
		child := exec.Command(os.Args[0], dir)
		child.Env = append(os.Environ(), roleVariable+"=1")
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		must(t, err, child.Start())
		lines := bufio.NewScanner(out)
		// A different moment each time, after at least one answer.
		for wanted := kill*7 + 1; wanted > 0 && lines.Scan(); wanted-- {
			acknowledge(t, acknowledged, lines.Text())
		}
		must(t, child.Process.Kill())
		for lines.Scan() { // answered before it died
			acknowledge(t, acknowledged, lines.Text())
		}
		_ = child.Wait() // it was killed
		report, err := Verify(dir, nil, nil)
		must(t, err)
		// What it was writing may be behind the head until the next writer cuts it off.
		if p := report.Problem; p != nil && (p.Kind != Inserted || p.Number != report.Records+1) {
			t.Fatalf("after kill %d: %v", kill, report.Problem)
		}
	}
	must(t, open(t, dir, small()).Close())
	entries, gaps := all(t, dir), 0
	for _, e := range entries {
		if e.Kind == KindGap {
			gaps++
			if e.Code == gapKilled && (e.Count == 0 || e.Count > queueMax) {
				t.Errorf("%+v", e)
			}
		}
	}
	sound(t, dir, len(entries))
	for number, what := range acknowledged {
		if entries[number-1].What != what || entries[number].What != what {
			t.Errorf("record %d is %q, and %q was acknowledged", number, entries[number-1].What, what)
		}
	}
	if len(acknowledged) < 10 {
		t.Errorf("control: %d were acknowledged", len(acknowledged))
	}
	t.Logf("%d acknowledged, %d records, %d gaps", len(acknowledged), len(entries), gaps)
}

func acknowledge(t *testing.T, acknowledged map[uint64]string, line string) {
	t.Helper()
	first, what, _ := strings.Cut(line, " ")
	number, err := strconv.ParseUint(first, 10, 64)
	must(t, err)
	acknowledged[number] = what
}

// abandoned is a log that its writer left as a kill does: nothing is written, marked or freed
// but the lock.
func abandoned(t *testing.T, queued int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	l := open(t, dir, small())
	with(t, l, decision("written"))
	l.mu.Lock()
	l.closed = true // before the writer looks at what follows
	l.orders = nil
	err := l.w.head.putUnwritten(uint64(queued))
	l.mu.Unlock()
	must(t, err)
	signal(l.urgent)
	<-l.ended
	must(t, l.w.close(), l.lock.Close())
	return dir
}

func TestAGapIsRecorded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		queued     int
		otherBoot  bool
		torn       string
		code, says string
		count      uint64
	}{
		{queued: 0},
		{queued: 3, code: gapKilled, count: 3, says: "up to 3"},
		{queued: 0, otherBoot: true, code: gapStopped, says: "the host stopped"},
		{queued: 3, otherBoot: true, code: gapStopped, says: "the host stopped"},
		{torn: `{"v":1,"numb`, code: gapCut, says: "12 bytes"},
		{torn: "\x00\x00\x00\x00", code: gapCut, says: "4 bytes"},
		{torn: "garbage\n", code: gapCut, says: "8 bytes"},
		{queued: 2, torn: "{", code: gapKilled, count: 2, says: "1 bytes"},
	} {
		dir := abandoned(t, c.queued)
		segments, err := segmentsOf(dir)
		must(t, err)
		file, err := os.OpenFile(segments[0].path, os.O_WRONLY|os.O_APPEND, 0)
		must(t, err)
		_, err = file.WriteString(c.torn)
		must(t, err, file.Close())
		if c.otherBoot {
			setBoot(t, dir, "another")
		}
		must(t, open(t, dir, small()).Close())
		entries := all(t, dir)
		if c.code == "" {
			if len(entries) != 1 {
				t.Errorf("%+v: %+v", c, entries)
			}
			continue
		}
		if len(entries) != 2 {
			t.Fatalf("%+v: %+v", c, entries)
		}
		if gap := entries[1]; gap.Kind != KindGap || gap.Code != c.code || gap.Count != c.count || !strings.Contains(gap.What, c.says) {
			t.Errorf("%+v: %+v", c, gap)
		}
		sound(t, dir, 2)
	}
}

// setBoot changes the boot in the newer slot of the head.
func setBoot(t *testing.T, dir, boot string) {
	t.Helper()
	changeHead(t, dir, func(h *head) { h.boot = boot })
}

// covering has the head acknowledge so many records.
func covering(t *testing.T, dir string, count uint64) {
	t.Helper()
	changeHead(t, dir, func(h *head) { h.count = count })
}

func changeHead(t *testing.T, dir string, change func(*head)) {
	t.Helper()
	path := filepath.Join(dir, headName)
	now, _, err := readHead(path)
	must(t, err)
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	f := headFile{file: file, now: now}
	change(&now)
	must(t, f.put(now), file.Close())
}

// A head of which one slot was not written whole is that of the other slot.
func TestHalfAHead(t *testing.T) {
	t.Parallel()
	dir := abandoned(t, 0)
	w := &writer{dir: dir}
	before, _, err := readHead(w.path(headName))
	must(t, err)
	text := readFile(t, w.path(headName))
	slot := int(before.sequence%2) * headSector
	for cut := 1; cut < 100; cut += 9 {
		half := append([]byte{}, text...)
		copy(half[slot+len(before.text())-cut:], make([]byte, cut))
		must(t, os.WriteFile(w.path(headName), half, 0o600))
		if got, _, err := readHead(w.path(headName)); err != nil || got.sequence != before.sequence-1 {
			t.Errorf("%d bytes are missing: %+v, %v", cut, got, err)
		}
	}
}

func BenchmarkEnqueue(b *testing.B) {
	l := open(b, b.TempDir(), Options{})
	e := decision("net:api.example.com:443")
	e.Time = time.Now()
	refused := 0
	for b.Loop() {
		for l.Enqueue(e) != nil { // the queue is full: wait for a commit
			refused++
			b.StopTimer()
			time.Sleep(10 * time.Millisecond)
			b.StartTimer()
		}
	}
	b.ReportMetric(float64(refused), "refused")
}

func BenchmarkAppend(b *testing.B) {
	l := open(b, b.TempDir(), Options{})
	for b.Loop() {
		with(b, l, decision("net:api.example.com:443"))
	}
}

// FuzzSegment: any bytes as a log are read without harm, and are sound only if every line of
// them is a record of the chain.
func FuzzSegment(f *testing.F) {
	good := readFile(f, mustSegment(f))
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add(append(append([]byte{}, good...), good...))
	f.Add([]byte("{}\n\n{\"v\":1,\"number\":1}\n"))
	f.Add([]byte(strings.Repeat("x", lineMax+1)))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := t.TempDir() + "/log"
		must(t, os.WriteFile(path, text, 0o600))
		report, err := Verify(path, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Count(string(text), "\n")
		if report.Problem == nil && (report.Records != uint64(lines) || len(text) > 0 && text[len(text)-1] != '\n') {
			t.Errorf("%d records in %d lines", report.Records, lines)
		}
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, segmentName(1)), text, 0o600), makeHead(filepath.Join(dir, headName)))
		covering(t, dir, uint64(lines))
		_ = Query(dir, Filter{}, func(e Entry) error { _, err := json.Marshal(e); return err })
	})
}

func mustSegment(f *testing.F) string {
	segments, err := segmentsOf(sampleLog(f, 5))
	must(f, err)
	return segments[0].path
}
