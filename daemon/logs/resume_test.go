package logs

import (
	"fmt"
	"testing"

	"clove.run/clove/api"
)

// A reader that resumes after its last number gets every line once, whatever rotation does
// meanwhile, and sees from the numbers what was dropped.
func TestResume(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := Open(dir, 8<<10)
	if err != nil {
		t.Fatal(err)
	}
	lines := l.Stream("stdout")
	var last int64
	said, dropped := 0, 0
	for round := range 200 {
		for range 5 * (round % 7) {
			said++
			fmt.Fprintf(lines, "line %d\n", said)
		}
		if round%60 == 59 { // a supervisor that continues the log
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if l, err = Open(dir, 8<<10); err != nil {
				t.Fatal(err)
			}
			lines = l.Stream("stdout")
		}
		if round%50 > 30 {
			continue // the log rotates while the reader is away
		}
		err := Read(t.Context(), dir, Choice{Tail: -1, After: last}, func(line api.LogLine) error {
			if line.LostLines > 0 {
				return nil
			}
			if line.Number <= last || line.Text != fmt.Sprintf("line %d", line.Number) {
				t.Fatalf("behind %d comes number %d, %q", last, line.Number, line.Text)
			}
			dropped += int(line.Number - last - 1)
			last = line.Number
			return nil
		})
		if err != nil || last != int64(said) {
			t.Fatalf("round %d: read to %d of %d, %v", round, last, said, err)
		}
	}
	if dropped == 0 {
		t.Error("nothing was dropped: the log never rotated past the reader")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
