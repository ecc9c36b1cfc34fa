package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestACopyKeepsItsTimes: those of files, links and folders, although their contents are
// written afterwards. A time in the future becomes the present, and a folder that existed
// keeps its own time.
func TestACopyKeepsItsTimes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source, target := filepath.Join(dir, "source"), filepath.Join(dir, "target")
	past, ahead := time.Unix(1_700_000_000, 123_456_000), time.Now().Add(24*time.Hour)
	err := errors.Join(os.MkdirAll(filepath.Join(source, "sub/deep"), 0o755), os.MkdirAll(filepath.Join(target, "there"), 0o755))
	for _, name := range []string{"f", "sub/f", "sub/deep/f", "sub/z", "ahead"} {
		err = errors.Join(err, os.WriteFile(filepath.Join(source, name), []byte("text"), 0o640))
	}
	err = errors.Join(err, os.Symlink("f", filepath.Join(source, "link")))
	names := []string{"f", "sub/deep/f", "sub/f", "sub/z", "link", "sub/deep", "sub", "."}
	for _, name := range names {
		err = errors.Join(err, unix.Lutimes(filepath.Join(source, name), []unix.Timeval{unix.NsecToTimeval(past.UnixNano()), unix.NsecToTimeval(past.UnixNano())}))
	}
	if err = errors.Join(err, os.Chtimes(filepath.Join(source, "ahead"), ahead, ahead)); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(target)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	began := time.Now().Add(-time.Second) // the kernel's clock for files is up to a tick late
	for _, as := range []string{"new", "there"} {
		var archive bytes.Buffer
		if err := errors.Join(pack(&archive, source, "x"), unpack(&archive, root, "x", as)); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			info, err := os.Lstat(filepath.Join(target, as, name))
			if err != nil {
				t.Fatal(err)
			}
			kept := info.ModTime().Equal(past)
			if wasThere := as == "there" && name == "."; kept == wasThere {
				t.Errorf("%s/%s is of %s", as, name, info.ModTime())
			}
		}
		info, err := os.Stat(filepath.Join(target, as, "ahead"))
		if err != nil || info.ModTime().Before(began) || info.ModTime().After(time.Now()) {
			t.Errorf("%s/ahead is of %v, %v", as, info.ModTime(), err)
		}
	}
}
