package files

import (
	"os"
	"path/filepath"
	"testing"
)

// Holes and zeros are the same, and everything else counts: a byte, its place, and the size.
func TestHashOfASparseFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sum := func(name string, size int64, at ...int64) string {
		t.Helper()
		path := filepath.Join(dir, name)
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if err := file.Truncate(size); err != nil {
			t.Fatal(err)
		}
		for _, offset := range at {
			if _, err := file.WriteAt([]byte("x"), offset); err != nil {
				t.Fatal(err)
			}
		}
		found, err := HashSparse(path)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	const size = 1 << 20
	plain := sum("plain", size, 5000, size-1)
	if err := os.WriteFile(filepath.Join(dir, "zeros"), make([]byte, size), 0o644); err != nil {
		t.Fatal(err)
	}
	zeros, err := HashSparse(filepath.Join(dir, "zeros"))
	if err != nil || zeros != sum("hole", size) {
		t.Errorf("zeros and a hole differ, %v", err)
	}
	for name, other := range map[string]string{"another place": sum("a", size, 5001, size-1), "another byte": sum("b", size, 5000), "another size": sum("c", size+1, 5000, size-1), "nothing": zeros} {
		if other == plain {
			t.Error(name)
		}
	}
	if sum("again", size, 5000, size-1) != plain {
		t.Error("the same file has another hash")
	}
}
