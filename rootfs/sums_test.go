package rootfs

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// A sum stands for what a reader of the file gets: a hole is as zeros are, and each byte, its place and the size count.
func TestSumsStandForBytes(t *testing.T) {
	dir := t.TempDir()
	const size = 5*sumBlock + 7
	sum := func(name string, write func(f *os.File)) string {
		t.Helper()
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := f.Truncate(size); err != nil {
			t.Fatal(err)
		}
		write(f)
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		sum, err := sumOf(t.Context(), f, info.Size())
		if err != nil || sum == "" {
			t.Fatal(sum, err)
		}
		return sum
	}
	at := func(offset int64, text string) func(*os.File) {
		return func(f *os.File) {
			if _, err := f.WriteAt([]byte(text), offset); err != nil {
				t.Fatal(err)
			}
		}
	}
	hole := sum("hole", func(*os.File) {})
	if zeros := sum("zeros", at(0, string(make([]byte, size)))); zeros != hole {
		t.Error("zeros differ from a hole")
	}
	seen := map[string]string{hole: "hole"}
	for name, write := range map[string]func(*os.File){
		"first": at(0, "a"), "other": at(0, "b"), "second": at(1, "a"), "next block": at(sumBlock, "a"), "far block": at(4*sumBlock, "a"), "last": at(size-1, "a"), "longer": at(size, "\x00"),
	} {
		got := sum(name, write)
		if before := seen[got]; before != "" {
			t.Errorf("%s has the sum of %s", name, before)
		}
		seen[got] = name
	}
	f, err := os.Open(filepath.Join(dir, "zeros"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sumOf(ended, f, size); err == nil {
		t.Error("it cannot be ended")
	}
}
