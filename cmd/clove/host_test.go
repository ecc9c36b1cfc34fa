package main

import (
	"debug/elf"
	"path/filepath"
	"slices"
	"testing"
)

func TestCurrentHost(t *testing.T) {
	h, err := currentHost()
	if err != nil {
		t.Fatal(err)
	}
	if !filepath.IsAbs(h.Dir) || len(h.CPUs) == 0 || !slices.IsSorted(h.CPUs) || h.StackBytes == 0 || h.Machine == elf.EM_NONE {
		t.Errorf("%+v", h)
	}
	if !h.inBase("/usr/bin/env") || h.inBase("/home/u/bin/env") || h.inBase("/usrlocal") || h.inBase("/root") {
		t.Error("the base system is drawn wrongly")
	}
	t.Setenv("CLOVE_TEST", "a=b")
	if h, err = currentHost(); err != nil {
		t.Fatal(err)
	}
	if value, set := h.lookup("CLOVE_TEST"); !set || value != "a=b" {
		t.Errorf("%q, %v", value, set)
	}
	if _, set := h.lookup("CLOVE_TES"); set {
		t.Error("a prefix of a name is not the name")
	}
}

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		path, dir string
		want      bool
	}{
		{"/a", "/a", true}, {"/a/b", "/a", true}, {"/ab", "/a", false}, {"/", "/a", false}, {"/a", "/", true}, {"/", "/", true},
	} {
		if got := within(c.path, c.dir); got != c.want {
			t.Errorf("%s in %s: %v", c.path, c.dir, got)
		}
	}
}

func TestAbsolute(t *testing.T) {
	h := host{Dir: "/work/here"}
	for path, want := range map[string]string{"a": "/work/here/a", "../a": "/work/a", "/x/./y/": "/x/y", ".": "/work/here"} {
		if got := h.absolute(path); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
}

func TestWhatAFileIs(t *testing.T) {
	b := newBench(t)
	program, text, dangling := b.program("program"), b.file("text", "", 0o644), b.link("nowhere", "dangling")
	link := b.link("program", "link")
	for _, c := range []struct {
		path                       string
		exists, program, directory bool
	}{
		{program, true, true, false},
		{link, true, true, false},
		{text, true, false, false},
		{dangling, true, false, false},
		{b.host.Dir, true, false, true},
		{b.host.Dir + "/absent", false, false, false},
	} {
		if exists(c.path) != c.exists || isProgram(c.path) != c.program || isDirectory(c.path) != c.directory {
			t.Errorf("%s: exists %v, program %v, directory %v", c.path, exists(c.path), isProgram(c.path), isDirectory(c.path))
		}
	}
}
