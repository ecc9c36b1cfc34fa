package host

import (
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestCurrentHost(t *testing.T) {
	h, err := Current()
	if err != nil {
		t.Fatal(err)
	}
	if !filepath.IsAbs(h.Dir) || len(h.CPUs) == 0 || !slices.IsSorted(h.CPUs) || h.Machine == elf.EM_NONE {
		t.Errorf("%+v", h)
	}
	if !h.InBase("/usr/bin/env") || h.InBase("/home/u/bin/env") || h.InBase("/usrlocal") || h.InBase("/root") {
		t.Error("the base system is drawn wrongly")
	}
	t.Setenv("CLOVE_TEST", "a=b")
	if h, err = Current(); err != nil {
		t.Fatal(err)
	}
	if value, set := h.Lookup("CLOVE_TEST"); !set || value != "a=b" {
		t.Errorf("%q, %v", value, set)
	}
	if _, set := h.Lookup("CLOVE_TES"); set {
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
		if got := Within(c.path, c.dir); got != c.want {
			t.Errorf("%s in %s: %v", c.path, c.dir, got)
		}
	}
}

func TestAbsolute(t *testing.T) {
	h := Host{Dir: "/work/here"}
	for path, want := range map[string]string{"a": "/work/here/a", "../a": "/work/a", "/x/./y/": "/x/y", ".": "/work/here"} {
		if got := h.Absolute(path); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
}

func TestWhatAFileIs(t *testing.T) {
	dir := t.TempDir()
	program, text, link, dangling := dir+"/program", dir+"/text", dir+"/link", dir+"/dangling"
	if err := errors.Join(os.WriteFile(program, []byte("\x7fELF"), 0o755), os.WriteFile(text, nil, 0o644),
		os.Symlink("program", link), os.Symlink("nowhere", dangling)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path                             string
		exists, program, file, directory bool
	}{
		{program, true, true, true, false},
		{link, true, true, true, false},
		{text, true, false, true, false},
		{dangling, true, false, false, false},
		{dir, true, false, false, true},
		{dir + "/absent", false, false, false, false},
	} {
		if Exists(c.path) != c.exists || IsProgram(c.path) != c.program || IsFile(c.path) != c.file || IsDirectory(c.path) != c.directory {
			t.Errorf("%s: exists %v, program %v, file %v, directory %v", c.path, Exists(c.path), IsProgram(c.path), IsFile(c.path), IsDirectory(c.path))
		}
	}
}

func TestSharedDirectoriesAreNoWorkspace(t *testing.T) {
	for _, dir := range []string{"/", "/tmp", "/root", "/home", "/etc", "/proc", "/proc/self", "/dev/shm", "/sys/fs"} {
		if CheckWorkspace("x", dir) == nil {
			t.Errorf("%s was taken", dir)
		}
	}
	for _, dir := range []string{"/home/u", "/root/agent", "/tmp/x", "/opt/agents", "/device"} {
		if err := CheckWorkspace("x", dir); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
}
