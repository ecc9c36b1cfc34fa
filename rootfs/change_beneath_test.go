package rootfs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Control: an ordinary open follows each way out.
func TestBeneathStaysInside(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	plant(t, top, "f outside 1", "d in", "d in/d", "f in/d/x 1", "l in/l d", "l in/abs "+top, "l in/d/up ../../outside", "l in/f d/x")
	inside, err := openBeneath(filepath.Join(top, "in"), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer inside.close()
	for rel, want := range map[string]error{"../outside": unix.EXDEV, "l/x": unix.ELOOP, "abs/outside": unix.ELOOP,
		"d/up": unix.ELOOP, "f": unix.ELOOP, "d/none": unix.ENOENT} {
		if _, err := os.ReadFile(filepath.Join(top, "in") + "/" + rel); err != nil && want != unix.ENOENT {
			t.Errorf("control: %s: %v", rel, err)
		}
		if file, err := inside.openRegular(rel); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", rel, err, want)
			file.Close()
		}
	}
	file, err := inside.openRegular("d/x")
	if err != nil {
		t.Fatal(err)
	}
	file.Close()
}

// An ordinary open of a FIFO without a writer would block for ever.
func TestOpenRegularRefusesOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plant(t, dir, "p pipe", "d d", "s socket")
	b, err := openBeneath(dir, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	for _, name := range []string{"pipe", "d", "socket"} {
		if file, err := b.openRegular(name); err == nil {
			file.Close()
			t.Errorf("%s was opened", name)
		}
	}
}

func TestReadLinkReadsTheLongest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	long := make([]byte, maxPath)
	for i := range long {
		long[i] = 'x'
	}
	plant(t, dir, "l l "+string(long))
	b, err := openBeneath(dir, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	if got, err := readLink(b.root, "l"); err != nil || got != string(long) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
