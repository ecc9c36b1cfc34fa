package logs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"clove.run/clove/api"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, dir string, capBytes int64) *Log {
	t.Helper()
	l, err := Open(dir, capBytes)
	must(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// everything reads the current content.
func everything(t testing.TB, dir string, choice Choice) []api.LogLine {
	t.Helper()
	var lines []api.LogLine
	must(t, Read(context.Background(), dir, choice, func(line api.LogLine) error { lines = append(lines, line); return nil }))
	return lines
}

func texts(lines []api.LogLine) string {
	var all []string
	for _, line := range lines {
		all = append(all, fmt.Sprintf("%s:%s", line.Stream, line.Content()))
	}
	return strings.Join(all, " ")
}

// roomy is a cap that no test's log reaches.
const roomy = 64 << 20

var all = Choice{Tail: -1}

func TestLinesOfBothStreams(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, roomy)
	out, errs := l.Stream("stdout"), l.Stream("stderr")
	fmt.Fprint(out, "one\ntw")
	fmt.Fprint(errs, "oh\n")
	fmt.Fprint(out, "o\n\nhalf")
	must(t, out.Close())
	lines := everything(t, dir, all)
	if got := texts(lines); got != "stdout:one stderr:oh stdout:two stdout: stdout:half" {
		t.Errorf("%s", got)
	}
	if !lines[4].Partial || lines[3].Partial {
		t.Errorf("%+v", lines)
	}
}

// Bytes are returned unchanged, whatever they are and however they were divided into writes.
func TestBytesComeBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "logs-*")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		l, err := Open(dir, roomy)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		out := l.Stream("stdout")
		var written []byte
		for _, piece := range rapid.SliceOf(rapid.SliceOfN(rapid.SampledFrom([]byte("ab\n\xff\x00ü")), 0, 20000)).Draw(t, "pieces") {
			written = append(written, piece...)
			out.Write(piece)
		}
		out.Close()
		var read []byte
		err = Read(context.Background(), dir, all, func(line api.LogLine) error {
			if len(line.Content()) > maxLine {
				t.Fatalf("a line of %d bytes", len(line.Content()))
			}
			read = append(read, line.Content()...)
			if !line.Partial {
				read = append(read, '\n')
			}
			return nil
		})
		if err != nil || !bytes.Equal(read, written) {
			t.Fatalf("%v: read %q, want %q", err, read, written)
		}
	})
}

// The cap is kept, the newest lines stay, and dropped lines are counted.
func TestRotationCountsWhatIsLost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const capBytes, many = 64 << 10, 5000
	l := open(t, dir, capBytes)
	out := l.Stream("stdout")
	for i := range many {
		fmt.Fprintf(out, "line %05d\n", i)
		if i%500 == 0 {
			if used := diskUse(t, dir); used > capBytes {
				t.Fatalf("%d bytes are used of %d", used, capBytes)
			}
		}
	}
	lines := everything(t, dir, all)
	lost := lines[0].LostLines
	if lost == 0 || lines[0].LostBytes != lost*10 || int(lost)+len(lines)-1 != many {
		t.Errorf("%d lines lost (%d bytes), %d left of %d", lost, lines[0].LostBytes, len(lines)-1, many)
	}
	for i, line := range lines[1:] {
		if want := fmt.Sprintf("line %05d", int(lost)+i); line.Text != want {
			t.Fatalf("%q in place of %q", line.Text, want)
		}
	}
	if len(lines) < 200 {
		t.Errorf("only %d lines are left", len(lines))
	}
}

func diskUse(t *testing.T, dir string) (used int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		info, err := e.Info()
		must(t, err)
		used += info.Size()
	}
	return used
}

// A restarted run continues its log and the numbering, also after half a line that a killed
// supervisor left.
func TestReopen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	written := 0
	for range 4 {
		l, err := Open(dir, 64<<10)
		must(t, err)
		out := l.Stream("stdout")
		for range 700 {
			fmt.Fprintf(out, "line %05d\n", written)
			written++
		}
		must(t, l.Close())
		file, err := os.OpenFile(filepath.Join(dir, newer), os.O_WRONLY|os.O_APPEND, 0)
		must(t, err)
		_, err = file.WriteString(`{"time":"2030-01-01T00:00:00Z","stre`)
		must(t, err)
		must(t, file.Close())
	}
	lines := everything(t, dir, all)
	if int(lines[0].LostLines)+len(lines)-1 != written {
		t.Errorf("%d lost and %d left of %d", lines[0].LostLines, len(lines)-1, written)
	}
}

func TestSinceAndTail(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, roomy)
	out := l.Stream("stdout")
	fmt.Fprint(out, "a\nb\n")
	middle := time.Now()
	fmt.Fprint(out, "c\nd\ne\n")
	for _, c := range []struct {
		choice Choice
		want   string
	}{
		{all, "stdout:a stdout:b stdout:c stdout:d stdout:e"},
		{Choice{Tail: 2}, "stdout:d stdout:e"},
		{Choice{Tail: 0}, ""},
		{Choice{Tail: 99}, "stdout:a stdout:b stdout:c stdout:d stdout:e"},
		{Choice{Since: middle, Tail: -1}, "stdout:c stdout:d stdout:e"},
		{Choice{Since: middle, Tail: 1}, "stdout:e"},
		{Choice{Since: time.Now().Add(time.Hour), Tail: -1}, ""},
	} {
		if got := texts(everything(t, dir, c.choice)); got != c.want {
			t.Errorf("%+v: %s, want %s", c.choice, got, c.want)
		}
	}
}

func TestNoLog(t *testing.T) {
	t.Parallel()
	if lines := everything(t, filepath.Join(t.TempDir(), "absent"), all); len(lines) != 0 {
		t.Errorf("%v", lines)
	}
}

// A follower gets every line once and in order, over rotations, and ends with the run.
func TestFollow(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "log")
	const many = 3000
	ended := make(chan struct{})
	seen := make(chan string, many)
	done := make(chan error, 1)
	go func() {
		done <- Read(context.Background(), dir, Choice{Tail: -1, Ended: ended}, func(line api.LogLine) error {
			if line.Stream == "stdout" {
				seen <- line.Text
			}
			return nil
		})
	}()
	l := open(t, dir, 256<<10)
	out := l.Stream("stdout")
	for i := range many {
		fmt.Fprintf(out, "line %05d\n", i)
		if i%100 == 99 { // the reader catches up: unread lines may be dropped
			for j := i - 99; j <= i; j++ {
				if got, want := <-seen, fmt.Sprintf("line %05d", j); got != want {
					t.Fatalf("%q, want %q", got, want)
				}
			}
		}
	}
	fmt.Fprint(out, "the last\n")
	close(ended)
	must(t, <-done)
	if got := <-seen; got != "the last" {
		t.Errorf("%q", got)
	}
}

func TestFollowEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- Read(ctx, t.TempDir(), Choice{Ended: make(chan struct{})}, func(api.LogLine) error { return nil })
	}()
	leave()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// If the disk refuses writes, the log loses lines, and the agent continues. A mark replaces
// them once the disk accepts writes again.
func TestFailedWritesAreCounted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, roomy)
	out := l.Stream("stdout")
	fmt.Fprint(out, "before\n")
	works := l.file
	broken, err := os.Open(os.DevNull) // opened for reading, so writes fail
	must(t, err)
	l.file = broken
	fmt.Fprint(out, "lost\nlost too\n")
	l.file = works
	must(t, broken.Close())
	fmt.Fprint(out, "after\n")
	lines := everything(t, dir, all)
	if texts(lines) != "stdout:before clove: stdout:after" || lines[1].LostLines != 2 || lines[1].LostBytes != 12 {
		t.Errorf("%+v", lines)
	}
}

func FuzzReadLine(f *testing.F) {
	f.Add([]byte(`{"time":"2030-01-01T00:00:00Z","stream":"stdout","text":"x"}`))
	f.Add([]byte("{\"head\":true}\n{\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, newer), text, 0o600))
		err := Read(context.Background(), dir, all, func(line api.LogLine) error {
			_, err := json.Marshal(line)
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	})
}
