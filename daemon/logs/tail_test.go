package logs

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"clove.run/clove/api"
)

// written is a log of this many lines below a cap; some are long, some are not text.
func written(t testing.TB, capBytes int64, lines int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	log, err := Open(dir, capBytes)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	streams := []*Lines{log.Stream("stdout"), log.Stream("stderr")}
	for i := range lines {
		text := fmt.Sprintf("%d %s", i, strings.Repeat("x<\t", random.IntN(200)))
		if i%97 == 0 {
			text += "\xff"
		}
		if _, err := streams[i%2].Write([]byte(text + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// tailOf returns the last lines. With whole they are found by reading everything.
func tailOf(t testing.TB, dir string, n int, whole bool) (lines []api.LogLine) {
	t.Helper()
	choice := Choice{Tail: n}
	if whole {
		choice.Since = time.Unix(1, 0)
	}
	if err := Read(t.Context(), dir, choice, func(line api.LogLine) error { lines = append(lines, line); return nil }); err != nil {
		t.Fatal(err)
	}
	return lines
}

// The last lines have the same text, numbers and offsets, whether they are found from the end
// or by reading everything: in one file, over a rotation, in a log that lost lines, after half
// an entry, and without the index of offsets.
func TestTailFromTheEnd(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]string{"short": written(t, roomy, 10), "one file": written(t, roomy, 5000),
		"rotated": written(t, 3<<20, 5000), "lost": written(t, 1<<20, 5000)} {
		all := tailOf(t, dir, 6000, true)
		for _, n := range []int{1, 5, 100, 900, 2500, 5000, 6000} {
			if got, want := tailOf(t, dir, n, false), all[max(0, len(all)-n):]; !reflect.DeepEqual(got, want) {
				t.Errorf("%s: the last %d are %d lines, want %d", name, n, len(got), len(want))
			}
		}
		file, err := os.OpenFile(filepath.Join(dir, newer), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteString(`{"time":"2026-01-0`); err != nil {
			t.Fatal(err)
		}
		file.Close()
		if got, want := tailOf(t, dir, 5, false), tailOf(t, dir, 5, true); !reflect.DeepEqual(got, want) {
			t.Errorf("%s, behind half an entry: %+v, want %+v", name, got, want)
		}
	}
}

// A few of the last lines need few reads. The control reads everything.
func TestTailReadsLittle(t *testing.T) {
	t.Parallel()
	dir := written(t, roomy, 20_000)
	file, err := os.Open(filepath.Join(dir, newer))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	at, _, err := findPosition(file, 5)
	if err != nil || at == nil || info.Size()-at.behind > 2*placeEvery {
		t.Errorf("of %d bytes it begins at %+v, %v", info.Size(), at, err)
	}
	if info.Size() < 20*placeEvery {
		t.Errorf("control: the log has %d bytes", info.Size())
	}
}

// A follower that began with the tail continues with the next line.
func TestFollowFromTheTail(t *testing.T) {
	t.Parallel()
	dir := written(t, roomy, 5000)
	log, err := Open(dir, roomy)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	out, ended, done := log.Stream("stdout"), make(chan struct{}), errors.New("done")
	var seen []int64
	paused := 0
	err = Read(t.Context(), dir, Choice{Tail: 3, Ended: ended, Pause: func() error {
		if paused++; paused == 1 {
			_, _ = out.Write([]byte("later\n"))
		}
		return nil
	}}, func(line api.LogLine) error {
		if seen = append(seen, line.Number); line.Text == "later" {
			return done
		}
		return nil
	})
	if !errors.Is(err, done) || !reflect.DeepEqual(seen, []int64{4998, 4999, 5000, 5001}) || paused == 0 {
		t.Errorf("%v, %v, %d", seen, err, paused)
	}
}
