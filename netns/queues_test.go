package netns

import (
	"os"
	"path/filepath"
	"testing"
)

func TestQueuedIn(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]int64{
		"sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode":    0,
		"0000000095fd7674 0   4711       00000000 8192     256      0     2        0        12244548": 8448,
		"0000000095fd7674 0   0          00000000 0        0        0     2        0        12244548": 0,
	} {
		if got, err := queuedIn([]byte(line)); err != nil || got != want {
			t.Errorf("%q: %d, %v, want %d", line, got, err, want)
		}
	}
	for _, line := range []string{"", "1 2 3 4", "1 2 3 4 many 6", "1 2 3 4 5 many"} {
		if got, err := queuedIn([]byte(line)); err == nil {
			t.Errorf("%q: %d", line, got)
		}
	}
}

func TestBoundOptionsOnlyLowers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "optmem_max")
	if err := boundOptions(path); err != nil {
		t.Errorf("a kernel without the file: %v", err)
	}
	for before, want := range map[string]string{"131072\n": "8192", "20480\n": "8192", "4096\n": "4096\n"} {
		if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := boundOptions(path); err != nil {
			t.Errorf("%q: %v", before, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%q: %q, %v, want %q", before, got, err, want)
		}
	}
}
