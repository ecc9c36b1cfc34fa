package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/initproto"
)

// A file is written where none is, in directories that are made, and through no link.
func TestWriteHome(t *testing.T) {
	t.Parallel()
	home, outside := t.TempDir(), t.TempDir()
	write := func(h initproto.HomeFile) error {
		h.Home = home
		return writeHome(&initproto.Orders{Home: &h})
	}
	text := func(name string) string {
		all, _ := os.ReadFile(filepath.Join(home, name))
		return string(all)
	}
	for _, h := range []initproto.HomeFile{{Path: ".client/deep/file", Text: "first"}, {Path: ".client/other", Text: "other"}, {Path: "plain", Text: "plain"}} {
		if err := write(h); err != nil || text(h.Path) != h.Text {
			t.Errorf("%s: %v, %q", h.Path, err, text(h.Path))
		}
	}
	if err := write(initproto.HomeFile{Path: ".client/deep/file", Text: "second"}); !errors.Is(err, unix.EEXIST) || text(".client/deep/file") != "first" {
		t.Errorf("over a file: %v, %q", err, text(".client/deep/file"))
	}
	if err := write(initproto.HomeFile{Path: ".client/deep/file", Text: "second", Keep: true}); err != nil || text(".client/deep/file") != "first" {
		t.Errorf("over its own: %v, %q", err, text(".client/deep/file"))
	}
	if err := write(initproto.HomeFile{Path: ".client/deep/file", Text: "third", Replace: true}); err != nil || text(".client/deep/file") != "third" {
		t.Errorf("in the place of an earlier run's: %v, %q", err, text(".client/deep/file"))
	}
	for link, target := range map[string]string{"dir": outside, "file": filepath.Join(outside, "none")} {
		if err := os.Symlink(target, filepath.Join(home, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"dir/x", "file", "plain/x"} {
		if err := write(initproto.HomeFile{Path: path, Text: "x"}); err == nil {
			t.Errorf("%s was written", path)
		}
	}
	if err := write(initproto.HomeFile{Path: "file", Text: "mine", Replace: true}); err != nil || text("file") != "mine" {
		t.Errorf("in the place of a link: %v, %q", err, text("file"))
	}
	for _, path := range []string{"dir/x", "plain/x", ".client"} {
		if err := write(initproto.HomeFile{Path: path, Text: "x", Replace: true}); err == nil {
			t.Errorf("%s was replaced", path)
		}
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
	if err := writeHome(&initproto.Orders{}); err != nil {
		t.Errorf("nothing to write: %v", err)
	}
}
