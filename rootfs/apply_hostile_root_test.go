//go:build root

package rootfs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The files that Apply writes belong to the owner of the workspace, whatever their owner in the
// layer was.
func TestApplyGivesTheWorkspacesOwner(t *testing.T) {
	w := newWorkspace(t, nil, []string{"f x 1", "d d", "l l x", "f root 1"})
	for name, owner := range map[string]int{"x": 700001000, "d": 700000000, "l": 700001000, "root": 0} {
		if err := unix.Lchown(filepath.Join(w.upper.Dir, name), owner, owner); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(w.host, 4321, 4322); err != nil {
		t.Fatal(err)
	}
	if got := w.apply(t, ""); len(got) != 4 {
		t.Fatalf("got %q", got)
	}
	for _, name := range []string{"x", "d", "l", "root"} {
		if st := statOf(t, w.host, name); st.Uid != 4321 || st.Gid != 4322 {
			t.Errorf("%s belongs to %d:%d", name, st.Uid, st.Gid)
		}
	}
}

func TestApplyRefusesDevices(t *testing.T) {
	w := newWorkspace(t, nil, nil)
	null, disk := filepath.Join(w.upper.Dir, "null"), filepath.Join(w.upper.Dir, "disk")
	if err := unix.Mknod(null, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mknod(disk, unix.S_IFBLK|0o666, int(unix.Mkdev(8, 0))); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(null); err != nil || len(data) != 0 {
		t.Fatalf("control: the device is none: %v", err)
	}
	got := w.apply(t, "")
	if len(got) != 2 || !strings.Contains(got[0], "refused: a device") || !strings.Contains(got[1], "refused: a device") {
		t.Errorf("got %q", got)
	}
	if now := listing(t, w.host); now != nil {
		t.Errorf("the host has %q", now)
	}
}

// The agent never saw what is mounted below the workspace, so Apply neither writes nor removes
// anything there, also if a directory above was deleted.
func TestApplyStopsAtMountPoints(t *testing.T) {
	top := layerMounts(t)
	for _, mounted := range []bool{false, true} {
		s, err := newSandbox(filepath.Join(top, map[bool]string{false: "control", true: "mounted"}[mounted]))
		if err != nil {
			t.Fatal(err)
		}
		plant(t, s.host, "d d", "d d/disk", "d e", "d e/disk", "d f")
		plant(t, s.upper.Dir, "w d", "d e", "d e/disk", "f e/disk/x 1", "d f", "f f/x 1")
		if mounted {
			for _, at := range []string{"d/disk", "e/disk"} {
				mountAt(t, "tmpfs", filepath.Join(s.host, at), "tmpfs", "")
				plant(t, filepath.Join(s.host, at), "f precious 1")
			}
		}
		_, done, err := s.outcome(t.Context())
		if err != nil || len(done) != 3 {
			t.Fatalf("got %q, %v", lines(done), err)
		}
		refused := slices.DeleteFunc(slices.Clone(done), func(c Change) bool { return c.Refused == "" })
		if want := map[bool]int{false: 0, true: 2}[mounted]; len(refused) != want {
			t.Errorf("mounted: %v, refused %q", mounted, lines(refused))
		}
		if !mounted {
			continue
		}
		for _, at := range []string{"d/disk", "e/disk"} {
			if now := listing(t, filepath.Join(s.host, at)); !slices.Equal(now, []string{"file 644 precious 1"}) {
				t.Errorf("%s holds %q", at, now)
			}
		}
	}
}

// A full target stops Apply; the file that did not fit stays as it was.
func TestApplyOnAFullFileSystem(t *testing.T) {
	top := layerMounts(t)
	w := workspace{host: filepath.Join(top, "small"), upper: Upper{Dir: filepath.Join(top, "upper"), Prefix: "/w"}}
	plant(t, top, "d small", "d upper")
	mountAt(t, "tmpfs", w.host, "tmpfs", "size=256k,mode=755")
	plant(t, w.host, "f x old")
	plant(t, w.upper.Dir, "f a 1", "f x "+strings.Repeat("1", 1<<20), "f y 1")
	w.upper.Since = newWorkspace(t, nil, nil).upper.Since
	done, err := Apply(t.Context(), w.upper, w.host, []Change{{Kind: Added, Path: "/w/a", Type: TypeFile},
		{Kind: Changed, Path: "/w/x", Type: TypeFile}, {Kind: Added, Path: "/w/y", Type: TypeFile}}, Access{})
	if err == nil || !strings.Contains(err.Error(), "no space left") || len(done) != 1 {
		t.Errorf("got %q, %v", lines(done), err)
	}
	if now := listing(t, w.host); !slices.Equal(now, []string{"file 644 a 1", "file 644 x old"}) {
		t.Errorf("the host has %q", now)
	}
}

// A file that is a mount point is refused, and the other changes are applied.
func TestApplyGoesOnPastABusyFile(t *testing.T) {
	s, err := newSandbox(layerMounts(t))
	if err != nil {
		t.Fatal(err)
	}
	plant(t, s.host, "f a 1", "f b 1", "f c 1")
	plant(t, s.upper.Dir, "w a", "f b 2", "f c 2")
	for _, name := range []string{"a", "b"} {
		at := filepath.Join(s.host, name)
		if err := unix.Mount(at, at, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Unmount(at, unix.MNT_DETACH) })
	}
	_, done, err := s.outcome(t.Context())
	want := []string{"C /w/b (refused: device or resource busy)", "C /w/c",
		"D /w/a (refused: device or resource busy)"}
	if got := lines(done); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
}
