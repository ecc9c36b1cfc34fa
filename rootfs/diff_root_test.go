//go:build root

package rootfs

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// If a lower directory is gone, the kernel's own attributes still show which directories were
// in it.
func TestDiffWhenTheLowerIsGone(t *testing.T) {
	s, err := newSandbox(layerMounts(t))
	if err != nil {
		t.Fatal(err)
	}
	plant(t, s.host, "d tmp", "d root", "d home", "d home/agent", "f motd 1", "l sbin usr/sbin", "d run")
	if err := s.mount(); err != nil {
		t.Fatal(err)
	}
	plant(t, s.merged, "f tmp/x 1", "f home/agent/y 1", "f motd 2", "d opt")
	if err := os.Remove(filepath.Join(s.merged, "run")); err != nil {
		t.Fatal(err)
	}
	if err := s.unmount(); err != nil {
		t.Fatal(err)
	}
	s.upper.Lower, s.upper.Prefix = "", "/"
	changes, err := Diff(t.Context(), []Upper{s.upper}, Access{})
	want := []string{"A /home/agent/y", "A /motd", "A /opt", "A /tmp/x", "D /run"}
	if got := lines(changes); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
}

// The kernel escapes an agent's own trusted.overlay.* attributes, and its user.overlay.* have
// no effect, so an agent can hide no change from Diff.
func TestDiffIsNotMisledByAttributes(t *testing.T) {
	s, err := newSandbox(layerMounts(t))
	if err != nil {
		t.Fatal(err)
	}
	plant(t, s.host, "d d", "f d/x 1", "f e 1")
	set := func(at, name string) error { return unix.Setxattr(at, name, []byte("y"), 0) }

	// Control: the same attribute in the upper directory itself does hide it.
	plant(t, s.upper.Dir, "d d")
	if err := set(filepath.Join(s.upper.Dir, "d"), "trusted.overlay.opaque"); err != nil {
		t.Fatal(err)
	}
	changes, err := Diff(t.Context(), []Upper{s.upper}, Access{})
	if got := lines(changes); err != nil || !slices.Equal(got, []string{"D /w/d/x"}) {
		t.Fatalf("control: %q, %v", got, err)
	}
	if err := os.Remove(filepath.Join(s.upper.Dir, "d")); err != nil {
		t.Fatal(err)
	}

	if err := s.mount(); err != nil {
		t.Fatal(err)
	}
	for at, marks := range map[string][]string{
		"d": {"trusted.overlay.opaque", "user.overlay.opaque", "trusted.overlay.redirect", "user.overlay.redirect"},
		"e": {"trusted.overlay.whiteout", "user.overlay.whiteout"}} {
		for _, mark := range marks {
			// Before Linux 6.7 overlayfs refuses its own attribute names to everybody, and
			// before 6.6 tmpfs has no user attributes: the refusal is fine too.
			err := set(filepath.Join(s.merged, at), mark)
			if err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
				t.Fatalf("%s: %v", mark, err)
			}
		}
	}
	if err := os.Truncate(filepath.Join(s.merged, "e"), 0); err != nil {
		t.Fatal(err)
	}
	want := listing(t, s.merged)
	if err := s.unmount(); err != nil {
		t.Fatal(err)
	}
	changes, done, err := s.outcome(t.Context())
	if got := lines(changes); err != nil || !slices.Equal(got, []string{"C /w/e"}) || len(done) != 1 {
		t.Errorf("got %q, %v", got, err)
	}
	if now := listing(t, s.host); !slices.Equal(now, want) {
		t.Errorf("the host has %q, the agent saw %q", now, want)
	}
}

// A directory that the host removed while the agent worked in it is not created again: the
// agent's files in it are refused, and reported.
func TestApplyDoesNotUndoTheHostsRemoval(t *testing.T) {
	top := layerMounts(t)
	for _, removed := range []bool{false, true} {
		s, err := newSandbox(filepath.Join(top, map[bool]string{false: "control", true: "removed"}[removed]))
		if err != nil {
			t.Fatal(err)
		}
		plant(t, s.host, "d d", "f d/old 1")
		if err := s.mount(); err != nil {
			t.Fatal(err)
		}
		plant(t, s.merged, "f d/new 1")
		if err := s.unmount(); err != nil {
			t.Fatal(err)
		}
		if removed {
			if err := os.RemoveAll(filepath.Join(s.host, "d")); err != nil {
				t.Fatal(err)
			}
		}
		_, done, err := s.outcome(t.Context())
		if err != nil || len(done) != 1 || done[0].Path != "/w/d/new" || (done[0].Refused != "") != removed {
			t.Errorf("removed: %v: %q, %v", removed, lines(done), err)
		}
	}
}
