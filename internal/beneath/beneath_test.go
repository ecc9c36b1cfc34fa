package beneath

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// tree is a directory with a file, a folder with a file, and links of each kind.
func tree(t *testing.T) *os.File {
	t.Helper()
	path := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(filepath.Join(path, "folder"), 0o755))
	for _, name := range []string{"passwd", "folder/inside"} {
		must(os.WriteFile(filepath.Join(path, name), []byte("ours"), 0o644))
	}
	for name, target := range map[string]string{"absolute": "/passwd", "above": "../../../passwd", "child": "folder", "magic": "/proc/self/root"} {
		must(os.Symlink(target, filepath.Join(path, name)))
	}
	root, err := os.Open(path)
	must(err)
	t.Cleanup(func() { root.Close() })
	return root
}

func TestLinksAreResolvedInside(t *testing.T) {
	t.Parallel()
	root := tree(t)
	for _, name := range []string{"passwd", "absolute", "above", "child/../passwd"} {
		file, err := Open(root, name, unix.O_RDONLY)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if text, err := io.ReadAll(file); string(text) != "ours" || err != nil {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		file.Close()
	}
	if _, err := Open(root, "magic", unix.O_RDONLY); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a link into the host's proc: %v", err)
	}
}

func TestAChildIsReachedByNoLink(t *testing.T) {
	t.Parallel()
	root := tree(t)
	for name, want := range map[string]error{"folder/inside": nil, "child/inside": unix.ELOOP, "absolute": unix.ELOOP, "..": unix.EXDEV} {
		file, err := OpenChild(root, name, unix.O_RDONLY)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
		file.Close()
	}
}

// TestAPlaceMayBeALink: the same place is reopened, whatever has its name by then.
func TestAPlaceMayBeALink(t *testing.T) {
	t.Parallel()
	root := tree(t)
	link, err := OpenPlace(root, "absolute")
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	if _, err := Reopen(link, os.O_RDONLY); !errors.Is(err, unix.ELOOP) {
		t.Errorf("a link was opened: %v", err)
	}
	place, err := OpenPlace(root, "passwd")
	if err != nil {
		t.Fatal(err)
	}
	defer place.Close()
	if err := os.Rename(filepath.Join(root.Name(), "folder/inside"), filepath.Join(root.Name(), "passwd")); err != nil {
		t.Fatal(err)
	}
	file, err := Reopen(place, os.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if same, err := sameFile(file, place); !same || err != nil {
		t.Errorf("another file was opened: %v", err)
	}
}

func sameFile(a, b *os.File) (bool, error) {
	one, err := a.Stat()
	if err != nil {
		return false, err
	}
	other, err := b.Stat()
	return os.SameFile(one, other), err
}

func TestFilesOfTheKernelAreRefused(t *testing.T) {
	t.Parallel()
	root, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, name := range []string{"proc/self/mem", "proc/version", "sys/kernel"} {
		if _, err := Open(root, name, unix.O_RDONLY); !errors.Is(err, errPseudo) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
