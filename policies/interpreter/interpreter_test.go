package interpreter

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/policies/host"
)

// tree is a folder of files.
type tree struct {
	t   *testing.T
	dir string
}

func newTree(t *testing.T) tree {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return tree{t, dir}
}

func (b tree) file(name, text string, mode os.FileMode) string {
	path := filepath.Join(b.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode)); err != nil {
		b.t.Fatal(err)
	}
	return path
}

func (b tree) program(name string) string { return b.file(name, "\x7fELF", 0o755) }

func (b tree) link(target, name string) string {
	path := filepath.Join(b.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink(target, path)); err != nil {
		b.t.Fatal(err)
	}
	return path
}

func TestPrefixOf(t *testing.T) {
	b := newTree(t)
	b.file("with-lib/lib/x", "", 0o644)
	b.file("with-conda/conda-meta/history", "", 0o644)
	b.file("with-venv/pyvenv.cfg", "", 0o644)
	b.file("home/lib/x", "", 0o644)
	b.file("home/.bashrc", "", 0o644)
	b.file("u/.local/lib/x", "", 0o644)
	b.file("nothing/else", "", 0o644)
	for program, want := range map[string]string{
		"with-lib/bin/x":   "with-lib",
		"with-conda/bin/x": "with-conda",
		"with-venv/bin/x":  "with-venv",
		"with-lib/sbin/x":  "",
		"with-lib/x":       "",
		"home/bin/x":       "",
		"u/.local/bin/x":   "",
		"nothing/bin/x":    "",
		"absent/bin/x":     "",
	} {
		got, err := prefixOf(filepath.Join(b.dir, program))
		if want != "" {
			want = filepath.Join(b.dir, want)
		}
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %s, %v", program, got, err)
		}
	}
	// Directories that all users share are refused by name, whatever is in them.
	for _, program := range []string{"/bin/x", "/tmp/bin/x", "/root/bin/x", "/home/bin/x"} {
		if prefix, err := prefixOf(program); err == nil {
			t.Errorf("%s: %s", program, prefix)
		}
	}
}

func TestLinkChain(t *testing.T) {
	b := newTree(t)
	end := b.program("lib/program")
	b.link("program", "lib/alias")
	first := b.link("../lib/alias", "bin/name")
	want := []string{first, filepath.Join(b.dir, "lib/alias"), end}
	if got := linkChain(first); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := linkChain(end); !slices.Equal(got, []string{end}) {
		t.Errorf("%q", got)
	}
}

func TestVirtualHome(t *testing.T) {
	for config, want := range map[string]string{
		"home = /opt/py/bin\n":                          "/opt/py/bin",
		"include-system-site-packages = false\nHOME=/x": "/x",
		"home = relative/bin\n":                         "",
		"home\n":                                        "",
		"homely = /x\n":                                 "",
		"":                                              "",
	} {
		b := newTree(t)
		b.file("venv/pyvenv.cfg", config, 0o644)
		got, isVirtual := virtualHome(b.dir + "/venv/bin/python")
		if got != want || isVirtual != (want != "") {
			t.Errorf("%q: %q, %v", config, got, isVirtual)
		}
	}
	if _, isVirtual := virtualHome(newTree(t).dir + "/bin/python"); isVirtual {
		t.Error("no pyvenv.cfg, and yet a virtual environment")
	}
}

func TestShimOf(t *testing.T) {
	b := newTree(t)
	for _, root := range []string{".pyenv", ".rbenv", "nodenv", "custom", "foreign"} {
		b.file(root+"/versions/1/x", "", 0o644)
		b.file(root+"/shims/tool", "#!/bin/sh\nexec "+map[string]string{"custom": "plenv", "foreign": "asdf"}[root]+" exec\n", 0o755)
	}
	b.file("plain/shims/tool", "pyenv", 0o755) // without versions beside it
	b.file(".pyenv/bin/tool", "pyenv", 0o755)
	for program, want := range map[string]string{
		".pyenv/shims/tool": "pyenv", ".rbenv/shims/tool": "rbenv", "nodenv/shims/tool": "nodenv", "custom/shims/tool": "plenv",
		"foreign/shims/tool": "", "plain/shims/tool": "", ".pyenv/bin/tool": "",
	} {
		manager, root, isShim := shimOf(filepath.Join(b.dir, program))
		if manager.name != want && isShim || isShim != (want != "") {
			t.Errorf("%s: %+v, %v", program, manager, isShim)
		}
		if isShim && root != filepath.Join(b.dir, strings.Split(program, "/")[0]) {
			t.Errorf("%s: root %s", program, root)
		}
	}
}

func TestInstalled(t *testing.T) {
	b := newTree(t)
	for _, v := range []string{"3.9.1", "3.10.2", "3.10.11", "3.1", "system-like"} {
		b.file("versions/"+v+"/bin/python3", "", 0o755)
	}
	b.file("outside/bin/python3", "", 0o755)
	for wanted, want := range map[string]string{
		"3.9.1": "3.9.1", "3.9": "3.9.1", "3.10": "3.10.11", "3": "3.10.11", "3.1": "3.1",
		"3.8": "", "": "", ".": "", "..": "", "../outside": "", "3.9.1/../../outside": "", "system": "",
	} {
		dir, found := installed(filepath.Join(b.dir, "versions"), wanted)
		if found != (want != "") || (found && filepath.Base(dir) != want) {
			t.Errorf("%q: %s, %v", wanted, dir, found)
		}
	}
	if dir, found := installed(b.dir+"/absent", "3"); found {
		t.Error(dir)
	}
}

func TestUpward(t *testing.T) {
	if got := strings.Join(upward("/a/b", "f"), " "); got != "/a/b/f /a/f /f" {
		t.Error(got)
	}
}

// The nearest file counts; a file without a version counts as none.
func TestWantedVersions(t *testing.T) {
	b := newTree(t)
	b.file("project/.python-version", "# nothing\n\n", 0o644)
	b.file(".python-version", "3.9 3.8\r\n3.7\n", 0o644)
	b.file("root/version", "3.1\n", 0o644)
	manager, root := versionManagers[0], b.dir+"/root"
	f := Finder{host.Host{Dir: b.dir}, b.dir + "/project"}
	if got, from := f.wantedVersions(manager, root); strings.Join(got, " ") != "3.9 3.7" || from != b.dir+"/.python-version" {
		t.Errorf("%q from %s", got, from)
	}
	f.Host.Environ = append(f.Host.Environ, "PYENV_VERSION=a:b")
	if got, from := f.wantedVersions(manager, root); strings.Join(got, " ") != "a b" || from != "PYENV_VERSION" {
		t.Errorf("%q from %s", got, from)
	}
}

func TestCompareVersions(t *testing.T) {
	versions := []string{"3.12.11", "3.9.1", "3.12.4", "3.12", "3.12.0rc1", "pypy3.9"}
	slices.SortFunc(versions, compareVersions)
	if got := strings.Join(versions, " "); got != "3.9.1 3.12 3.12.0rc1 3.12.4 3.12.11 pypy3.9" {
		t.Error(got)
	}
}
