package files

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// tree makes files below a new folder.
func tree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, path := range []string{"d/e", "empty"} {
		if err := os.MkdirAll(filepath.Join(dir, path), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for path, mode := range map[string]os.FileMode{"a": 0o644, "d/run": 0o755, "d/e/secret": 0o600} {
		if err := os.WriteFile(filepath.Join(dir, path), []byte(path), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../a", filepath.Join(dir, "d/link")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func hash(t *testing.T, dir string) string {
	t.Helper()
	sum, err := Hash(dir)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// A tree of any kind is measured: holes are free, links are not followed.
func TestUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	empty, err := Used(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, most := range map[string]int64{"full": 0, "hole": 1 << 30} {
		file, err := os.Create(filepath.Join(dir, name))
		if err == nil {
			_, err = file.Write(bytes.Repeat([]byte("x"), 1<<20))
		}
		if err := errors.Join(err, file.Truncate(max(most, 1<<20)), file.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("/", filepath.Join(dir, "out")), syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if used, err := Used(dir); err != nil || used-empty < 2<<20 || used-empty > 3<<20 {
		t.Errorf("%d bytes, %v", used-empty, err)
	}
}

func TestCopiesAndArchivesAreTheSame(t *testing.T) {
	t.Parallel()
	dir, to, again := tree(t), t.TempDir(), t.TempDir()
	if err := Copy(dir, to); err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	if err := Pack(dir, &first); err != nil {
		t.Fatal(err)
	}
	if err := Pack(to, &second); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the archives differ")
	}
	if err := Unpack(&first, again); err != nil {
		t.Fatal(err)
	}
	if hash(t, dir) != hash(t, to) || hash(t, dir) != hash(t, again) {
		t.Error("the hashes differ")
	}
	info, err := os.Stat(filepath.Join(again, "d/e/secret"))
	if err != nil || info.Mode().Perm() != 0o600 || !info.ModTime().Equal(Epoch()) {
		t.Errorf("%v, %v", info, err)
	}
}

func TestTheHashSeesEachChange(t *testing.T) {
	t.Parallel()
	seen := map[string]string{hash(t, tree(t)): "nothing"}
	for what, change := range map[string]func(dir string) error{
		"content": func(dir string) error { return os.WriteFile(filepath.Join(dir, "a"), []byte("b"), 0o644) },
		"name":    func(dir string) error { return os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "b")) },
		"execute": func(dir string) error { return os.Chmod(filepath.Join(dir, "a"), 0o755) },
		"folder":  func(dir string) error { return os.Remove(filepath.Join(dir, "empty")) },
		"link":    func(dir string) error { return os.Remove(filepath.Join(dir, "d/link")) },
	} {
		dir := tree(t)
		if err := change(dir); err != nil {
			t.Fatal(err)
		}
		sum := hash(t, dir)
		if before, known := seen[sum]; known {
			t.Errorf("%s has the hash of %s", what, before)
		}
		seen[sum] = what
	}
	dir := tree(t) // another umask
	if err := os.Chmod(filepath.Join(dir, "a"), 0o664); err != nil {
		t.Fatal(err)
	}
	if seen[hash(t, dir)] != "nothing" {
		t.Error("a permission of the group's changes the hash")
	}
}

func TestWhatIsNoFileIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Hash(dir); err == nil {
		t.Error("a pipe was read")
	}
}
