package gitpull

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// folder is a Source in a directory.
type folder string

func (f folder) Names(dir string) (names []string, err error) {
	entries, err := os.ReadDir(filepath.Join(string(f), dir))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return names, err
}

func (f folder) Open(name string) (*os.File, error) { return os.Open(filepath.Join(string(f), name)) }

// plant writes a loose object as text, whatever it is.
func plant(t *testing.T, text string) folder {
	t.Helper()
	dir := t.TempDir()
	var object bytes.Buffer
	z := zlib.NewWriter(&object)
	if _, err := z.Write([]byte(text)); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	at := filepath.Join(dir, "objects/aa")
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(at, strings.Repeat("b", 38)), object.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return folder(dir)
}

// The pack is what git makes of the same objects, of both formats.
func TestAPackHasTheObjects(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		dir := t.TempDir()
		git := func(stdin []byte, args ...string) string {
			t.Helper()
			c := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
			c.Dir, c.Stdin = dir, bytes.NewReader(stdin)
			out, err := c.CombinedOutput()
			if err != nil {
				t.Fatalf("git %q: %v, %s", args, err, out)
			}
			return string(out)
		}
		git(nil, "init", "-q", "--object-format="+format)
		for _, size := range []int{0, 15, 16, 2047, 2048, 100_000} {
			if err := os.WriteFile(filepath.Join(dir, "file"), bytes.Repeat([]byte("x"), size), 0o644); err != nil {
				t.Fatal(err)
			}
			git(nil, "add", "file")
			git(nil, "commit", "-q", "-m", "x")
		}
		git(nil, "tag", "-a", "-m", "x", "v1")
		before := git(nil, "cat-file", "--batch-check", "--batch-all-objects")
		left, err := list(folder(filepath.Join(dir, ".git")))
		if err != nil || len(left.loose) != strings.Count(before, "\n") {
			t.Fatalf("%d objects, %v", len(left.loose), err)
		}
		var pack bytes.Buffer
		if err := writePack(context.Background(), &pack, folder(filepath.Join(dir, ".git")), left.loose); err != nil {
			t.Fatal(err)
		}
		for _, name := range left.loose {
			if err := os.Remove(filepath.Join(dir, ".git", name)); err != nil {
				t.Fatal(err)
			}
		}
		git(pack.Bytes(), "index-pack", "--strict", "--stdin")
		if after := git(nil, "cat-file", "--batch-check", "--batch-all-objects"); after != before {
			t.Errorf("%s: before\n%sand after\n%s", format, before, after)
		}
	}
}

func TestDamagedObjectsAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"blob 3\x00abc": "", "blob 4\x00abc": "EOF", "blob -1\x00": "damaged", "blob 99999999999999\x00": "more than 16 GiB", "blub 3\x00abc": "damaged",
		"blob 3": "damaged", strings.Repeat("b", 99): "damaged", "blob 3\x00abcd": "damaged",
	} {
		source := plant(t, text)
		left, err := list(source)
		if err != nil || len(left.loose) != 1 {
			t.Fatalf("%+v, %v", left, err)
		}
		var out bytes.Buffer
		if err := writePack(context.Background(), &out, source, left.loose); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
