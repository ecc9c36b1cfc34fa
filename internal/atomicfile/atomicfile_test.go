package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// expect is the whole content of a folder with one file.
func expect(t *testing.T, path, text string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 || !entries[0].Type().IsRegular() {
		t.Errorf("%v, %v", entries, err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != text {
		t.Errorf("%q, %v; want %q", got, err, text)
	}
}

func TestAFileIsReplacedWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	for _, text := range []string{"the first", "2"} {
		if err := Write(path, 0o600, []byte(text)); err != nil {
			t.Fatal(err)
		}
		expect(t, path, text)
	}
	failed := errors.New("failed")
	if err := Replace(path, 0o600, func(file *os.File) error { _, _ = file.WriteString("half"); return failed }); !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
	expect(t, path, "2")
	if err := Replace(path, 0o600, func(file *os.File) error { return file.Chmod(0o640) }); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o640 {
		t.Errorf("%v, %v", info, err)
	}
}

// Another user who may write into the folder cannot redirect the text.
func TestALinkIsReplaced(t *testing.T) {
	t.Parallel()
	elsewhere, path := filepath.Join(t.TempDir(), "elsewhere"), filepath.Join(t.TempDir(), "file")
	if err := errors.Join(os.WriteFile(elsewhere, []byte("kept"), 0o600), os.Symlink(elsewhere, path), Write(path, 0o600, []byte("new"))); err != nil {
		t.Fatal(err)
	}
	expect(t, path, "new")
	expect(t, elsewhere, "kept")
}

// The control for the folder, which cannot be replaced, is the file, which can.
func TestWhatCannotBePlacedLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	full := filepath.Join(dir, "folder")
	if err := os.MkdirAll(filepath.Join(full, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(full, 0o600, nil); err == nil {
		t.Error("a folder became a file")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	if err := Write(filepath.Join(dir, "none", "file"), 0o600, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}
