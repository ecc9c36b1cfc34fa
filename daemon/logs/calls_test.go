package logs

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"clove.run/clove/api"
)

// Calls at the same time do not mix, and a text without a line end gets one.
func TestCallsAreWholeInTheLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log, err := OpenCalls(dir, 8<<20)
	if err != nil {
		t.Fatal(err)
	}
	const calls = 40
	long := strings.Repeat("x", maxLine+5)
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() {
			log.Add(fmt.Sprint("call ", i), []byte(fmt.Sprint("{", i, long, "}")), []byte("data: a\n\ndata: b\n\n"))
		})
	}
	all.Wait()
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	var lines []api.LogLine
	err = Read(t.Context(), dir, Choice{Tail: -1}, func(l api.LogLine) error { lines = append(lines, l); return nil })
	if err != nil || len(lines) != 7*calls {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	for ; len(lines) > 0; lines = lines[7:] {
		number := strings.TrimPrefix(lines[0].Text, "call ")
		streams := ""
		for _, l := range lines[:7] {
			streams += l.Stream + " "
		}
		if streams != "clove request request answer answer answer answer " || !strings.HasPrefix(lines[1].Text, "{"+number+"x") || !lines[1].Partial || lines[2].Partial || lines[3].Text != "data: a" {
			t.Errorf("%s: %s", number, streams)
		}
	}
}
