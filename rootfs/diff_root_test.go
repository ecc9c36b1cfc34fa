//go:build root

package rootfs

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// A skeleton that was made for one run is no lower directory that Diff could
// open later; the kernel's own attributes must do.
func TestDiffOfASkeleton(t *testing.T) {
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
	changes, err := Diff(t.Context(), []Upper{s.upper})
	want := []string{"A /home/agent/y", "A /opt", "A /tmp/x", "C /motd", "D /run"}
	if got := lines(changes); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
}

// An agent's own trusted.overlay.* are escaped by the kernel and its
// user.overlay.* mean nothing, so it can hide no change from Diff.
func TestDiffIsNotMisledByAttributes(t *testing.T) {
	s, err := newSandbox(layerMounts(t))
	if err != nil {
		t.Fatal(err)
	}
	plant(t, s.host, "d d", "f d/x 1", "f e 1")
	set := func(at, name string) error { return unix.Setxattr(at, name, []byte("y"), 0) }

	// Control: the same attribute in the upper directory itself does hide.
	plant(t, s.upper.Dir, "d d")
	if err := set(filepath.Join(s.upper.Dir, "d"), "trusted.overlay.opaque"); err != nil {
		t.Fatal(err)
	}
	changes, err := Diff(t.Context(), []Upper{s.upper})
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
		"d": {"trusted.overlay.opaque", "user.overlay.opaque"},
		"e": {"trusted.overlay.whiteout", "user.overlay.whiteout"}} {
		for _, mark := range marks {
			if err := set(filepath.Join(s.merged, at), mark); err != nil {
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
