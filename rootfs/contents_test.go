package rootfs

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// contentsOf compares with the contents of paths.
func contentsOf(t *testing.T, low, up string, room int, paths ...string) map[string]Change {
	t.Helper()
	changes, err := diffUpper(t.Context(), Upper{Dir: up, Lower: low, Prefix: "/w"}, opaqueAt(""), &room, Access{Contents: paths})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]Change{}
	for _, c := range changes {
		found[c.Path] = c
	}
	return found
}

func TestContentsOfBothSides(t *testing.T) {
	low, up := t.TempDir(), t.TempDir()
	plant(t, low, "f changed old", "f gone was", "f mode same", "f type file", "d dir", "f dir/in old")
	plant(t, up, "f changed new", "w gone", "f mode same", "m mode 755", "l type target", "f added fresh", "d dir", "f dir/in new", "p pipe")
	found := contentsOf(t, low, up, maxListBytes, "/w")
	for path, want := range map[string]Contents{
		"/w/changed": {Before: []byte("old"), After: []byte("new"), Mode: 0o644},
		"/w/gone":    {Before: []byte("was"), Mode: 0o644},
		"/w/mode":    {Before: []byte("same"), After: []byte("same"), Mode: 0o644},
		"/w/type":    {Before: []byte("file"), After: []byte("target"), Mode: 0o644},
		"/w/added":   {After: []byte("fresh")},
		"/w/dir/in":  {Before: []byte("old"), After: []byte("new"), Mode: 0o644},
	} {
		got := found[path].Contents
		if got == nil || string(got.Before) != string(want.Before) || string(got.After) != string(want.After) || got.Mode != want.Mode || got.Omitted != "" {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
	}
	if found["/w/pipe"].Contents != nil {
		t.Errorf("%+v", found["/w/pipe"])
	}
	// Of one path only.
	found = contentsOf(t, low, up, maxListBytes, "/w/dir")
	if found["/w/changed"].Contents != nil || found["/w/dir/in"].Contents == nil {
		t.Errorf("%+v", found)
	}
}

// What is too large is listed, and says so.
func TestContentsAreBounded(t *testing.T) {
	low, up := t.TempDir(), t.TempDir()
	plant(t, up, "f small x", "f large "+strings.Repeat("x", maxManifestBytes+1), "f one "+strings.Repeat("1", 2000))
	found := contentsOf(t, low, up, maxListBytes, "/w")
	if c := found["/w/large"].Contents; c == nil || c.After != nil || c.Omitted != "larger than 1 MiB" {
		t.Errorf("%+v", c)
	}
	if c := found["/w/small"].Contents; c == nil || string(c.After) != "x" {
		t.Errorf("%+v", c)
	}
	found = contentsOf(t, low, up, 2900, "/w")
	if c := found["/w/one"].Contents; c == nil || !strings.Contains(c.Omitted, "too much") {
		t.Errorf("%+v", c)
	}
}

// A host's file that the user may not read, and that is a mount point by now, has no contents.
func TestContentsThatTheUserMayNotRead(t *testing.T) {
	low, up := t.TempDir(), t.TempDir()
	plant(t, low, "f secret old")
	plant(t, up, "f secret new")
	room := maxListBytes
	refuse := func(f func() error) error {
		if err := f(); err == unix.ENOENT || err == unix.ENOTDIR {
			return err
		}
		return unix.EACCES
	}
	opens := 0
	rights := func(f func() error) error {
		if opens++; opens <= 2 { // the top, and its names
			return f()
		}
		if opens == 3 { // statAt
			return f()
		}
		return refuse(f)
	}
	changes, err := diffUpper(t.Context(), Upper{Dir: up, Lower: low, Prefix: "/w"}, opaqueAt(""), &room, Access{Host: map[string]Rights{"/w": rights}, Contents: []string{"/w"}})
	if err != nil || len(changes) != 1 {
		t.Fatalf("%+v, %v", changes, err)
	}
	if c := changes[0].Contents; c == nil || c.Omitted != "the host's cannot be read" || c.Before != nil || c.After != nil {
		t.Errorf("%+v", c)
	}
}
