package rootfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// statOf returns the attributes of name in dir.
func statOf(t *testing.T, dir, name string) unix.Stat_t {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(filepath.Join(dir, name), &st); err != nil {
		t.Fatal(err)
	}
	return st
}

func TestApplyDropsSpecialBits(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, nil, []string{"f x 1", "m x 6755", "d d", "m d 3777"})
	if st := statOf(t, w.upper.Dir, "x"); st.Mode&permissions != 0o6755 {
		t.Fatalf("control: the layer's own mode is %o", st.Mode)
	}
	if got := w.apply(t, ""); len(got) != 2 {
		t.Fatalf("got %q", got)
	}
	if now := listing(t, w.host); !slices.Equal(now, []string{"dir 777 d ", "file 755 x 1"}) {
		t.Errorf("the host has %q", now)
	}
}

// A file with several hard links becomes one file with several links, not several files.
func TestApplyKeepsHardLinks(t *testing.T) {
	t.Parallel()
	layer := []string{"f a " + strings.Repeat("1", 4096), "d d"}
	for i := range 50 {
		layer = append(layer, fmt.Sprintf("h d/%d a", i))
	}
	w := newWorkspace(t, nil, layer)
	if got := w.apply(t, ""); len(got) != 52 {
		t.Fatalf("%d changes: %q", len(got), got)
	}
	first := statOf(t, w.host, "a")
	if last := statOf(t, w.host, "d/49"); first.Ino != last.Ino || first.Nlink != 51 {
		t.Errorf("inodes %d and %d, %d links", first.Ino, last.Ino, first.Nlink)
	}
}

// The host replaced the first link before the second is written: the second becomes a copy of
// the layer's file, not a link to the host's.
func TestApplyLinksOnlyToWhatItWrote(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, nil, []string{"f a 1", "h b a"})
	a, err := openApplier(w.upper, w.host, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	for _, name := range []string{"a", "b"} {
		if made, err := applyOne(t, a, Change{Kind: Added, Path: "/w/" + name, Type: TypeFile}); !made || err != nil {
			t.Fatalf("%s: %v, %v", name, made, err)
		}
		if name == "a" {
			plant(t, w.host, "f other host")
			if err := os.Rename(filepath.Join(w.host, "other"), filepath.Join(w.host, "a")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if now := listing(t, w.host); !slices.Equal(now, []string{"file 644 a host", "file 644 b 1"}) {
		t.Errorf("the host has %q", now)
	}
}

// A sparse file with a size of a terabyte takes only the space of its data.
func TestApplyKeepsHoles(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, nil, []string{"f hole", "f mixed"})
	const size = 1 << 40
	for _, name := range []string{"hole", "mixed"} {
		if err := os.Truncate(filepath.Join(w.upper.Dir, name), size); err != nil {
			t.Fatalf("control: %v", err)
		}
	}
	mixed, err := os.OpenFile(filepath.Join(w.upper.Dir, "mixed"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, offset := range []int64{1 << 20, size - 3} {
		if _, err := mixed.WriteAt([]byte("abc"), offset); err != nil {
			t.Fatal(err)
		}
	}
	mixed.Close()
	changes, err := Diff(t.Context(), []Upper{w.upper}, Access{})
	if err != nil {
		t.Fatal(err)
	}
	if done, err := Apply(t.Context(), w.upper, w.host, changes, Access{}); err != nil || len(done) != 2 || done[0].Refused != "" {
		t.Fatalf("got %+v, %v", done, err)
	}
	for name, most := range map[string]int64{"hole": 0, "mixed": 64 << 10} {
		if st := statOf(t, w.host, name); st.Size != size || st.Blocks*512 > most {
			t.Errorf("%s: %d bytes, %d of them held", name, st.Size, st.Blocks*512)
		}
	}
	file, err := os.Open(filepath.Join(w.host, "mixed"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, offset := range []int64{1 << 20, size - 3} {
		var data [3]byte
		if _, err := file.ReadAt(data[:], offset); err != nil || string(data[:]) != "abc" {
			t.Errorf("at %d: %q, %v", offset, data, err)
		}
	}
}

// The staged entry is used only if it is the one that was just made.
func TestOpenStagedRefusesAnother(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, []string{"f x 1", "h y x"}, nil)
	a, err := openApplier(w.upper, w.host, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	if err := a.enter("."); err != nil {
		t.Fatal(err)
	}
	plant(t, w.host, "l "+stagedName+" x")
	file, err := a.openStaged(unix.O_PATH)
	if err != nil {
		t.Fatalf("control: %v", err)
	}
	file.Close()
	if err := os.Rename(filepath.Join(w.host, "x"), filepath.Join(w.host, stagedName)); err != nil {
		t.Fatal(err)
	}
	if file, err := a.openStaged(unix.O_PATH); err == nil {
		file.Close()
		t.Error("a file with another name was taken for our own")
	}
}

func TestStaysBelow(t *testing.T) {
	t.Parallel()
	tests := map[bool][][2]string{
		true: {{"l", "x"}, {"l", "."}, {"l", "a//b/"}, {"a/l", ".."}, {"a/b/l", "../../x"}, {"l", "..."}, {"l", "..x/y"}},
		false: {{"l", ""}, {"l", "/"}, {"l", "/x"}, {"l", ".."}, {"a/l", "../.."}, {"l", "./.."}, {"l", "a/.."},
			{"a/l", "b/../x"}, {"a/l", ".././../x"}},
	}
	for want, pairs := range tests {
		for _, pair := range pairs {
			if got := staysBelow(pair[0], pair[1]); got != want {
				t.Errorf("%s -> %q: got %v", pair[0], pair[1], got)
			}
		}
	}
}

// No combination of links that are accepted one by one leads outside.
func TestNoChainOfLinksLeadsOut(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	places := []string{"l", "a/l", "a/b/l", "k", "a/k", "a/b/k"}
	rapid.Check(t, func(r *rapid.T) {
		root := filepath.Join(top, "root")
		if err := os.MkdirAll(filepath.Join(root, "a/b"), 0o755); err != nil {
			r.Fatal(err)
		}
		defer os.RemoveAll(root)
		element := rapid.SampledFrom([]string{"..", ".", "a", "b", "k", "l"})
		for _, at := range places {
			link := strings.Join(rapid.SliceOfN(element, 1, 5).Draw(r, at), "/")
			if !staysBelow(at, link) {
				continue
			}
			if err := os.Symlink(link, filepath.Join(root, at)); err != nil {
				r.Fatal(err)
			}
		}
		for _, at := range places {
			end, err := filepath.EvalSymlinks(filepath.Join(root, at))
			if err == nil && end != root && !strings.HasPrefix(end, root+"/") {
				r.Fatalf("%s ends at %s", at, end)
			}
		}
	})
}

// A file that appeared after the check is not overwritten.
func TestCreateDoesNotReplace(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, []string{"f x host"}, []string{"f x 1", "f y 1"})
	a, err := openApplier(w.upper, w.host, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	if err := a.enter("."); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{"x": unix.EEXIST, "y": nil} {
		e, err := a.entryAt(a.upper.root, Change{Type: TypeFile}, name)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.create(t.Context(), e); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
	if now := listing(t, w.host); !slices.Equal(now, []string{"file 644 x host", "file 644 y 1"}) {
		t.Errorf("the host has %q", now)
	}
}

// Properties of a file that Apply does not write are named; a plain file loses nothing.
func TestApplyNamesWhatItLoses(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, []string{"f known 1"}, []string{"f plain 1", "f marked 1", "m marked 4755", "d d", "m d 1777", "h again plain", "h known plain"})
	if err := unix.Setxattr(filepath.Join(w.upper.Dir, "marked"), "user.origin", []byte("x"), 0); err != nil {
		t.Skipf("the file system has no user attributes: %v", err)
	}
	want := []string{"A /w/again (without some of its hard links)", "A /w/d (without its sticky bit)",
		"A /w/marked (without its attribute user.origin, its set-user-id bit)", "A /w/plain (without some of its hard links)"}
	if got := w.apply(t, ""); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	whole := newWorkspace(t, nil, []string{"f plain 1", "h again plain", "d d"})
	if got := whole.apply(t, ""); !slices.Equal(got, []string{"A /w/again", "A /w/d", "A /w/plain"}) {
		t.Errorf("control: %q", got)
	}
}
