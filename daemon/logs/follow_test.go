package logs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"clove.run/clove/api"
)

// A follower that is too slow misses whole files, and gets the number of missed lines at the
// right place: shown and lost lines are together all that was written.
func TestFollowCountsWhatItMissed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "log")
	const many = 20000 // a dozen rotations
	l := open(t, dir, 64<<10)
	out := l.Stream("stdout")
	fmt.Fprintln(out, "line 00000")
	ended, first, goOn := make(chan struct{}), make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	next, lost := 0, int64(0)
	go func() {
		done <- Read(context.Background(), dir, Choice{Tail: -1, Ended: ended}, func(line api.LogLine) error {
			if line.LostLines > 0 {
				lost += line.LostLines
				next += int(line.LostLines)
				return nil
			}
			if want := fmt.Sprintf("line %05d", next); line.Text != want {
				return fmt.Errorf("%q in place of %q", line.Text, want)
			}
			if next++; next == 1 {
				close(first)
				<-goOn
			}
			return nil
		})
	}()
	<-first
	for i := 1; i < many; i++ {
		fmt.Fprintf(out, "line %05d\n", i)
	}
	close(goOn)
	close(ended)
	must(t, <-done)
	if next != many || lost == 0 {
		t.Errorf("%d of %d lines are told of, %d as lost", next, many, lost)
	}
}

// A rotation that a kill interrupted does not change the count.
func TestReopenEndsARotation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := Open(dir, 64<<10)
	must(t, err)
	out := l.Stream("stdout")
	const many = 3000
	for i := range many {
		fmt.Fprintf(out, "line %05d\n", i)
	}
	must(t, l.rotate(time.Now()))
	must(t, l.Close())
	must(t, os.Rename(filepath.Join(dir, newer), filepath.Join(dir, prepared)))
	l = open(t, dir, 64<<10)
	fmt.Fprintln(l.Stream("stdout"), "after")
	lines := everything(t, dir, all)
	if int(lines[0].LostLines)+len(lines)-1 != many+1 {
		t.Errorf("%d lost and %d left of %d", lines[0].LostLines, len(lines)-1, many+1)
	}
}

// Lines that a full disk lost are still counted when the entry that says so is dropped.
func TestLostLinesOutliveTheirMark(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, 64<<10)
	out := l.Stream("stdout")
	works := l.file
	broken, err := os.Open(os.DevNull) // opened for reading, so writes fail
	must(t, err)
	l.file = broken
	fmt.Fprint(out, "lost\nlost too\n")
	l.file = works
	must(t, broken.Close())
	const many = 5000
	for i := range many {
		fmt.Fprintf(out, "line %05d\n", i)
	}
	lines := everything(t, dir, all)
	if int(lines[0].LostLines)+len(lines)-1 != many+2 {
		t.Errorf("%d lost and %d left of %d", lines[0].LostLines, len(lines)-1, many+2)
	}
}

// After a rotation that failed half-way, the log is written and counted further.
func TestRotationFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, 64<<10)
	out := l.Stream("stdout")
	const many = 2000
	for i := range many {
		fmt.Fprintf(out, "line %05d\n", i)
	}
	// A directory at the path of the prepared file.
	must(t, os.RemoveAll(filepath.Join(dir, prepared)))
	must(t, os.Mkdir(filepath.Join(dir, prepared), 0o700))
	for i := range many {
		fmt.Fprintf(out, "line %05d\n", many+i)
	}
	must(t, os.Remove(filepath.Join(dir, prepared)))
	fmt.Fprintln(out, "after")
	lines := everything(t, dir, all)
	sum := 0
	for _, line := range lines {
		sum += max(1, int(line.LostLines))
	}
	if sum != 2*many+1 || lines[len(lines)-1].Text != "after" {
		t.Errorf("%d lines are told of, %d were written", sum, 2*many+1)
	}
}
