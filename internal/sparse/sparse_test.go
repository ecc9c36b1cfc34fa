package sparse

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// holed makes a file of size with the text at each offset.
func holed(t *testing.T, size int64, text string, offsets ...int64) *os.File {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	for _, at := range offsets {
		if _, err := file.WriteAt([]byte(text), at); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Truncate(size); err != nil {
		t.Fatal(err)
	}
	return file
}

func packed(t *testing.T, name string, file *os.File, size int64) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, around := range []string{"before", "", "after"} {
		if around != "" {
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: around, Size: 3, Mode: 0o600}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write([]byte("abc")); err != nil {
				t.Fatal(err)
			}
			continue
		}
		parts, err := Parts(file, size)
		if err != nil {
			t.Fatal(err)
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o640, ModTime: time.Unix(1000, 5), Format: tar.FormatPAX}
		if _, err := Write(&b, w, h, file, parts); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func blocks(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Blocks
}

func TestHolesAreKept(t *testing.T) {
	const mib = 1 << 20
	for name, file := range map[string]struct {
		size    int64
		offsets []int64
	}{
		"plain": {5, []int64{0}}, "hole": {64 * mib, nil}, "middle": {64 * mib, []int64{32 * mib}}, "ends": {64*mib + 5, []int64{0, 64 * mib}},
		"odd/ 0NU.sparse. 1NU.sparse.map=1": {8 * mib, []int64{4 * mib}}, strings.Repeat("long", 60): {8 * mib, []int64{4 * mib}}, "empty": {0, nil},
	} {
		t.Run(filepath.Base(name)[:4], func(t *testing.T) {
			from := holed(t, file.size, "hello", file.offsets...)
			text := packed(t, name, from, file.size)
			if len(text) > 64<<10 {
				t.Errorf("the archive has %d bytes", len(text))
			}
			archive, names := tar.NewReader(bytes.NewReader(text)), []string{}
			for {
				h, err := archive.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if names = append(names, h.Name); h.Name != name {
					continue
				}
				to := holed(t, 0, "")
				room := int64(1 << 30)
				if err := Read(to, h, archive, &room); err != nil || h.Size != file.size || h.Mode != 0o640 || !h.ModTime.Equal(time.Unix(1000, 5)) {
					t.Fatalf("%v, %+v", err, h)
				}
				want, _ := os.ReadFile(from.Name())
				got, _ := os.ReadFile(to.Name())
				if !bytes.Equal(got, want) || blocks(t, to.Name()) > blocks(t, from.Name()) {
					t.Errorf("%d bytes in %d blocks, want %d in %d", len(got), blocks(t, to.Name()), len(want), blocks(t, from.Name()))
				}
			}
			if len(names) != 3 {
				t.Errorf("%q", names)
			}
			// GNU tar reads the same.
			dir := t.TempDir()
			tarCommand := exec.Command("tar", "xf", "-", "-C", dir)
			tarCommand.Stdin = bytes.NewReader(text)
			if out, err := tarCommand.CombinedOutput(); err != nil {
				t.Fatalf("%v, %s", err, out)
			}
			got, err := os.ReadFile(filepath.Join(dir, name))
			want, _ := os.ReadFile(from.Name())
			if err != nil || !bytes.Equal(got, want) || blocks(t, filepath.Join(dir, name)) > blocks(t, from.Name())+8 {
				t.Errorf("%v, %d bytes", err, len(got))
			}
		})
	}
}

func TestManyPartsAndManyHoles(t *testing.T) {
	var offsets []int64
	for i := range int64(MostParts + 10) {
		offsets = append(offsets, i*8192)
	}
	file := holed(t, offsets[len(offsets)-1]+8192, "x", offsets...)
	parts, err := Parts(file, offsets[len(offsets)-1]+8192)
	if err != nil || len(parts) > MostParts {
		t.Fatalf("%d, %v", len(parts), err)
	}
	large := holed(t, 1<<40, "x", 1<<39)
	archive := tar.NewReader(bytes.NewReader(packed(t, "large", large, 1<<40)))
	for {
		h, err := archive.Next()
		if err != nil {
			t.Fatal(err)
		}
		if room := int64(1 << 30); h.Name == "large" {
			if err := Read(holed(t, 0, ""), h, archive, &room); !errors.Is(err, ErrHoles) {
				t.Error(err)
			}
			return
		}
	}
}

// A file that becomes shorter while it is written has zeros for the rest.
func TestAShorterFile(t *testing.T) {
	file := holed(t, 1<<20, "hello", 1<<19)
	parts, _ := Parts(file, 1<<20)
	if err := file.Truncate(1<<19 + 2); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	short, err := Write(&b, w, &tar.Header{Typeflag: tar.TypeReg, Name: "f", Size: 1 << 20}, file, parts)
	if err != nil || !short || w.Close() != nil {
		t.Fatal(short, err)
	}
	archive := tar.NewReader(&b)
	if h, err := archive.Next(); err != nil || h.Size != 1<<20 {
		t.Fatal(h, err)
	}
	if text, err := io.ReadAll(archive); err != nil || len(text) != 1<<20 || string(text[1<<19:1<<19+5]) != "he\x00\x00\x00" {
		t.Error(err)
	}
}
