package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBackup(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t)
	if status, stdout, stderr := b.clove("backup", "copy"); status != 0 || stdout != "" || b.backend.backup != filepath.Join(here, "copy") {
		t.Errorf("%d, %q, %q, %q", status, stdout, stderr, b.backend.backup)
	}
	for _, args := range [][]string{{"backup"}, {"backup", "a", "b"}, {"backup", ""}} {
		if status, _, stderr := newBench(t).clove(args...); status != exitFailed || !strings.Contains(stderr, "one file") {
			t.Errorf("%q: %d, %q", args, status, stderr)
		}
	}
}
