package rootfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// templatesOf makes the directory of templates with files of the given ages.
func templatesOf(t *testing.T, now time.Time, ages map[string]time.Duration) (stateDir string) {
	t.Helper()
	stateDir = t.TempDir()
	if err := os.Mkdir(templatesDir(stateDir), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, age := range ages {
		path := filepath.Join(templatesDir(stateDir), name)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, now.Add(-age), now.Add(-age))); err != nil {
			t.Fatal(err)
		}
	}
	return stateDir
}

func left(t *testing.T, stateDir string) []string {
	t.Helper()
	entries, err := os.ReadDir(templatesDir(stateDir))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

const day = 24 * time.Hour

// TestUnusedTemplatesAreSwept: by their age; other files in the directory stay.
func TestUnusedTemplatesAreSwept(t *testing.T) {
	t.Parallel()
	now := time.Now()
	stateDir := templatesOf(t, now, map[string]time.Duration{
		"base-1-aa.img": 31 * day, "base-2-bb.img": 29 * day, "rootfs-1-cc.img": 400 * day, "base-3-dd.img": -day, "notes": 400 * day,
	})
	abandoned, unused, err := SweepTemplates(stateDir, now)
	if err != nil || len(abandoned) != 0 || !slices.Equal(unused, []string{"base-1-aa.img", "rootfs-1-cc.img"}) {
		t.Errorf("swept %v and %v, %v", abandoned, unused, err)
	}
	if names := left(t, stateDir); !slices.Equal(names, []string{"base-2-bb.img", "base-3-dd.img", "notes"}) {
		t.Errorf("left: %v", names)
	}
}

// TestUseIsNoted: a template that is used is not swept a month after it was made, and its file
// is not written at each start.
func TestUseIsNoted(t *testing.T) {
	t.Parallel()
	now := time.Now()
	stateDir := templatesOf(t, now, map[string]time.Duration{"base-1-aa.img": 40 * day, "base-2-bb.img": time.Hour, "base-3-cc.img": 40 * day})
	for _, name := range []string{"base-1-aa.img", "base-2-bb.img"} {
		path := filepath.Join(templatesDir(stateDir), name)
		file, err := template{Path: path}.open()
		if err != nil {
			t.Fatal(err)
		}
		file.Close()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if age := now.Sub(info.ModTime()); name == "base-1-aa.img" && age > time.Minute || name == "base-2-bb.img" && age < 59*time.Minute {
			t.Errorf("%s is %v old after its use", name, age)
		}
	}
	if _, unused, err := SweepTemplates(stateDir, now); err != nil || !slices.Equal(unused, []string{"base-3-cc.img"}) {
		t.Errorf("swept %v, %v; only the template that was not opened is unused", unused, err)
	}
}

// TestOnlyDeadMakersAreCleanedUpAfter: the lock shows whether a maker lives, however old its
// directory is; a kill releases the lock.
func TestOnlyDeadMakersAreCleanedUpAfter(t *testing.T) {
	t.Parallel()
	now := time.Now()
	stateDir := templatesOf(t, now, map[string]time.Duration{".new-file": 400 * day})
	dir := templatesDir(stateDir)
	alive, err := newScratch(dir)
	if err != nil {
		t.Fatal(err)
	}
	dead, err := newScratch(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dead.path, "image"), nil, 0o600), os.Chtimes(alive.path, now.Add(-400*day), now.Add(-400*day))); err != nil {
		t.Fatal(err)
	}
	// Control: while the maker lives, nothing is cleaned up.
	if names, err := AbandonedTemplates(stateDir); err != nil || len(names) != 0 {
		t.Fatalf("two makers live, yet abandoned are %v, %v", names, err)
	}
	dead.lock.Close() // as the kernel does at the end of a killed process
	want := []string{filepath.Base(dead.path)}
	for range 2 { // the first check changes nothing
		if names, err := AbandonedTemplates(stateDir); err != nil || !slices.Equal(names, want) {
			t.Errorf("abandoned are %v, %v, want %v", names, err, want)
		}
	}
	abandoned, unused, err := SweepTemplates(stateDir, now)
	if err != nil || !slices.Equal(abandoned, want) || len(unused) != 0 {
		t.Errorf("swept %v and %v, %v", abandoned, unused, err)
	}
	if names := left(t, stateDir); len(names) != 2 || !slices.Contains(names, filepath.Base(alive.path)) || !slices.Contains(names, ".new-file") {
		t.Errorf("left: %v", names)
	}
	if err := alive.remove(); err != nil {
		t.Error(err)
	}
	if _, err := claimScratch(alive.path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("claimed one that is done: %v", err)
	}
}

func TestNoTemplatesAreNone(t *testing.T) {
	t.Parallel()
	stateDir := t.TempDir()
	abandoned, unused, err := SweepTemplates(stateDir, time.Now())
	names, err2 := AbandonedTemplates(stateDir)
	if err != nil || err2 != nil || len(abandoned)+len(unused)+len(names) != 0 {
		t.Errorf("%v %v %v, %v, %v", abandoned, unused, names, err, err2)
	}
}

// TestKindsLeaveEachOtherAlone: when a template is made, the only ones removed are those of an
// older /etc and those that a killed process left.
func TestKindsLeaveEachOtherAlone(t *testing.T) {
	t.Parallel()
	names := []string{"base-1-aa.img", "base-1-bb.img", "base-2-aa.img", "rootfs-1-aa.img"}
	ages := map[string]time.Duration{}
	for _, name := range names {
		ages[name] = 0
	}
	stateDir := templatesOf(t, time.Now(), ages)
	dead, err := newScratch(templatesDir(stateDir))
	if err != nil {
		t.Fatal(err)
	}
	dead.lock.Close()
	template{Path: filepath.Join(templatesDir(stateDir), names[1]), Kind: templateBase, Bytes: 1}.removeOlder()
	if got := left(t, stateDir); !slices.Equal(got, names[1:]) {
		t.Errorf("left: %v, want %v", got, names[1:])
	}
}
