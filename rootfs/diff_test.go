package rootfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// plant makes the entries below dir. Each is "d PATH", "f PATH CONTENT",
// "l PATH TARGET", "p PATH" (a FIFO), "s PATH" (a socket), "w PATH" (a
// whiteout), "h PATH OLD" (a hard link) or "m PATH MODE" (chmod).
func plant(t testing.TB, dir string, entries ...string) {
	t.Helper()
	for _, entry := range entries {
		word := strings.SplitN(entry+"  ", " ", 3)
		at, rest := filepath.Join(dir, word[1]), strings.TrimSuffix(strings.TrimSuffix(word[2], " "), " ")
		var err error
		switch word[0] {
		case "d":
			err = os.Mkdir(at, 0o755)
		case "f":
			err = os.WriteFile(at, []byte(rest), 0o644)
		case "l":
			err = os.Symlink(rest, at)
		case "h":
			err = os.Link(filepath.Join(dir, rest), at)
		case "p":
			err = unix.Mkfifo(at, 0o644)
		case "s":
			err = unix.Mknod(at, unix.S_IFSOCK|0o644, 0)
		case "w": // any user may make one since Linux 5.8
			err = unix.Mknod(at, unix.S_IFCHR, 0)
		case "m":
			mode, _ := strconv.ParseUint(rest, 8, 32)
			err = unix.Chmod(at, uint32(mode))
		default:
			err = errors.New("no such kind of entry")
		}
		if err != nil {
			t.Fatalf("cannot plant %q: %v", entry, err)
		}
	}
}

// opaqueAt returns marks that declare the directories of that base name opaque.
func opaqueAt(name string) marks {
	return func(dir *os.File, entry, mark string) (string, bool, error) {
		at, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()))
		if mark == "opaque" && entry == "." && name != "" && filepath.Base(at) == name {
			return "y", true, err
		}
		return "", false, err
	}
}

// diffOf compares a prepared upper with a prepared lower directory.
func diffOf(t *testing.T, lower, upper []string, read marks) []string {
	t.Helper()
	low, up := t.TempDir(), t.TempDir()
	plant(t, low, lower...)
	plant(t, up, upper...)
	room := maxListBytes
	changes, err := diffUpper(t.Context(), Upper{Dir: up, Lower: low, Prefix: "/w"}, read, &room, Access{})
	if err != nil {
		t.Fatal(err)
	}
	return lines(changes)
}

func lines(changes []Change) []string {
	var text []string
	for _, c := range changes {
		text = append(text, c.String())
	}
	slices.Sort(text)
	return text
}

func TestDiff(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name                string
		lower, upper, wants []string
		opaque              string
	}{
		{"nothing", []string{"f x 1"}, nil, nil, ""},
		{"added", nil, []string{"f x 1", "d d", "f d/y 2", "l l x", "p p"},
			[]string{"A /w/d", "A /w/d/y", "A /w/l -> x", "A /w/p", "A /w/x"}, ""},
		{"content", []string{"f x 1", "f y 1", "f z 1"}, []string{"f x 2", "f y 12", "f z 1"}, []string{"C /w/x", "C /w/y"}, ""},
		{"mode", []string{"f x 1", "d d"}, []string{"f x 1", "m x 4644", "d d", "m d 700"}, []string{"C /w/d", "C /w/x"}, ""},
		{"link text", []string{"l a x", "l b x"}, []string{"l a x", "l b y"}, []string{"C /w/b -> y"}, ""},
		{"only holds", []string{"d d", "f d/x 1", "d d/e", "f d/e/y 1"}, []string{"d d", "d d/e", "f d/e/y 2"}, []string{"C /w/d/e/y"}, ""},
		{"deleted", []string{"f x 1", "d d", "f d/y 1"}, []string{"w x", "w d"}, []string{"D /w/d", "D /w/x"}, ""},
		{"deleted by both", nil, []string{"w x"}, nil, ""},
		{"opaque", []string{"d d", "f d/same 1", "f d/new 1", "d d/e", "f d/e/y 1", "d d/gone", "f d/gone/z 1"},
			[]string{"d d", "f d/same 1", "f d/new 2", "d d/e", "f d/e/z 1"},
			[]string{"A /w/d/e/z", "C /w/d/new", "D /w/d/e/y", "D /w/d/gone"}, "d"},
		{"dir to link", []string{"d d", "f d/x 1"}, []string{"l d /etc"}, []string{"C /w/d -> /etc (was a dir)"}, ""},
		{"link to dir", []string{"l d /etc"}, []string{"d d", "f d/passwd 1"}, []string{"A /w/d/passwd", "C /w/d (was a symlink)"}, ""},
		{"file to dir", []string{"f d 1"}, []string{"d d", "f d/x 1"}, []string{"A /w/d/x", "C /w/d (was a file)"}, ""},
		{"fifo stays", []string{"p p", "s s"}, []string{"p p", "s s"}, nil, ""},
		{"fifo to file", []string{"p p"}, []string{"f p 1"}, []string{"C /w/p (was a fifo)"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := diffOf(t, tt.lower, tt.upper, opaqueAt(tt.opaque)); !slices.Equal(got, tt.wants) {
				t.Errorf("got %q, want %q", got, tt.wants)
			}
		})
	}
}

// A lower link is not followed if an upper directory is in its place: its target is no part of
// the comparison.
func TestDiffDoesNotFollowTheHostsLinks(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	plant(t, outside, "f x 1")
	if got := diffOf(t, []string{"d d", "f d/x 1"}, []string{"d d", "f d/x 1"}, opaqueAt("")); got != nil {
		t.Fatalf("control: equal trees differ: %q", got)
	}
	got := diffOf(t, []string{"l d " + outside}, []string{"d d", "f d/x 1"}, opaqueAt(""))
	if want := []string{"A /w/d/x", "C /w/d (was a symlink)"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Without a lower directory, the kernel's mark that a directory was copied up distinguishes it
// from one that the agent made.
func TestDiffWithoutLower(t *testing.T) {
	t.Parallel()
	up := t.TempDir()
	plant(t, up, "d tmp", "f tmp/x 1", "f renamed 1", "w gone", "d new")
	copied := func(_ *os.File, entry, mark string) (string, bool, error) {
		return "", mark == "origin" && (entry == "tmp" || entry == "renamed"), nil
	}
	room := maxListBytes
	changes, err := diffUpper(t.Context(), Upper{Dir: up, Prefix: "/"}, copied, &room, Access{})
	want := []string{"A /new", "A /renamed", "A /tmp/x", "D /gone"}
	if got := lines(changes); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
}

func TestDiffKnowsAttributeWhiteouts(t *testing.T) {
	t.Parallel()
	read := func(_ *os.File, entry, mark string) (string, bool, error) {
		return "", mark == "whiteout" && (entry == "x" || entry == "full"), nil
	}
	got := diffOf(t, []string{"f x 1", "f y 1", "f full 1"}, []string{"f x", "f y", "f full 2"}, read)
	if want := []string{"C /w/full", "C /w/y", "D /w/x"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// An agent can set user.overlay.*; the mount ignores it, and so must Diff.
func TestDiffIgnoresUserAttributes(t *testing.T) {
	t.Parallel()
	low, up := t.TempDir(), t.TempDir()
	plant(t, low, "d d", "f d/x 1")
	plant(t, up, "d d", "f d/y 1")
	if err := unix.Setxattr(filepath.Join(up, "d"), "user.overlay.opaque", []byte("y"), 0); err != nil {
		t.Logf("the attribute cannot even be set here: %v", err)
	}
	changes, err := Diff(t.Context(), []Upper{{Dir: up, Lower: low, Prefix: "/w"}}, Access{})
	if got := lines(changes); err != nil || !slices.Equal(got, []string{"A /w/d/y"}) {
		t.Errorf("got %q (%v)", got, err)
	}
}

func TestDiffDescribesAndSorts(t *testing.T) {
	t.Parallel()
	low, one, two := t.TempDir(), t.TempDir(), t.TempDir()
	plant(t, low, "f gone 123")
	plant(t, one, "w gone", "f z 12", "m z 2755", "l l z")
	plant(t, two, "d a")
	got, err := Diff(t.Context(), []Upper{{Dir: one, Lower: low, Prefix: "/w"}, {Dir: two, Prefix: "/"}}, Access{})
	want := []Change{
		{Kind: Added, Path: "/a", Type: TypeDir, Mode: 0o755},
		{Kind: Deleted, Path: "/w/gone", Type: TypeFile, Size: 3, Mode: 0o644},
		{Kind: Added, Path: "/w/l", Type: TypeSymlink, Mode: 0o777, Target: "z"},
		{Kind: Added, Path: "/w/z", Type: TypeFile, Size: 2, Mode: 0o2755},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v (%v), want %+v", got, err, want)
	}
}

// A tree that is deeper than the longest path is reported once and not entered.
func TestDiffStopsAtTheLongestPath(t *testing.T) {
	t.Parallel()
	up := t.TempDir()
	deep := growDeep(t, up, 30)
	changes, err := Diff(t.Context(), []Upper{{Dir: up, Prefix: "/w"}}, Access{})
	if err != nil || len(changes) == 0 {
		t.Fatalf("got %d changes, %v", len(changes), err)
	}
	last := changes[len(changes)-1]
	if len(changes) >= deep || last.Refused == "" || len(last.Path) > maxPath+len("/w/") {
		t.Errorf("%d of %d levels, the last refused for %q", len(changes), deep, last.Refused)
	}
	for _, c := range changes[:len(changes)-1] {
		if c.Refused != "" {
			t.Errorf("%d bytes of path are refused: %s", len(c.Path), c.Refused)
		}
	}
}

// growDeep makes nested directories with the longest names.
func growDeep(t *testing.T, dir string, levels int) int {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	for range levels {
		name := strings.Repeat("n", unix.NAME_MAX)
		if err := root.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
		next, err := root.OpenRoot(name)
		root.Close()
		if err != nil {
			t.Fatal(err)
		}
		root = next
	}
	root.Close()
	return levels
}

func TestDiffBoundsItsMemory(t *testing.T) {
	t.Parallel()
	up := t.TempDir()
	plant(t, up, "f a 1", "f b 1", "f c 1")
	for _, tt := range []struct {
		room int
		want error
	}{{4096, nil}, {200, errTooMany}} {
		_, err := diffUpper(t.Context(), Upper{Dir: up, Prefix: "/w"}, opaqueAt(""), &tt.room, Access{})
		if !errors.Is(err, tt.want) {
			t.Errorf("room left %d: got %v, want %v", tt.room, err, tt.want)
		}
	}
}

func TestDiffFails(t *testing.T) {
	t.Parallel()
	up := t.TempDir()
	plant(t, up, "f x 1")
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := Diff(ended, []Upper{{Dir: up}}, Access{}); !errors.Is(err, context.Canceled) {
		t.Errorf("ended: %v", err)
	}
	if _, err := Diff(t.Context(), []Upper{{Dir: filepath.Join(up, "none")}}, Access{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no upper: %v", err)
	}
	if _, err := Diff(t.Context(), []Upper{{Dir: up, Lower: filepath.Join(up, "none")}}, Access{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no lower: %v", err)
	}
	broken := func(*os.File, string, string) (string, bool, error) { return "", false, unix.EIO }
	room := maxListBytes
	if _, err := diffUpper(t.Context(), Upper{Dir: up}, broken, &room, Access{}); !errors.Is(err, unix.EIO) {
		t.Errorf("attributes cannot be read: %v", err)
	}
}

// A mounted layer is given as a descriptor; a target never is.
func TestDiffOpensByDescriptor(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, []string{"f x 1"}, []string{"f x 2"})
	dir, err := os.Open(w.upper.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	w.upper.Dir = fmt.Sprintf("/proc/self/fd/%d", dir.Fd())
	if got := w.apply(t, ""); !slices.Equal(got, []string{"C /w/x"}) {
		t.Errorf("got %q", got)
	}
	if _, err := Apply(t.Context(), w.upper, w.upper.Dir, nil, Access{}); !errors.Is(err, unix.ELOOP) {
		t.Errorf("as target: %v", err)
	}
}
