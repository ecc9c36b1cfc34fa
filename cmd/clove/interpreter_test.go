package main

import (
	"clove.run/clove/policies/resolve"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// interpreterBench has a base system with python3, bash, sh, node and env in base/bin, which
// is in PATH. Tests add other files.
func interpreterBench(t *testing.T) *bench {
	b := newBench(t)
	b.host.Base = []string{b.host.Dir + "/base"}
	for _, name := range []string{"python3.11", "bash", "sh", "node", "perl", "env"} {
		b.program("base/bin/" + name)
	}
	b.link("python3.11", "base/bin/python3")
	b.file("work/agent.py", "print(1)\n", 0o644)
	b.path("base/bin")
	return b
}

func (b *bench) program(name string) string { return b.file(name, "\x7fELF", 0o755) }

// path sets PATH to directories of the bench.
func (b *bench) path(dirs ...string) {
	for i, dir := range dirs {
		dirs[i] = filepath.Join(b.host.Dir, dir)
	}
	b.setenv("PATH=" + strings.Join(dirs, ":"))
}

// pyenv creates a version manager with one installation for each version.
func (b *bench) pyenv(root string, versions ...string) {
	b.file(root+"/shims/python3", "#!/usr/bin/env bash\nexec pyenv exec\n", 0o755)
	for _, v := range versions {
		b.program(root + "/versions/" + v + "/bin/python3.x")
		b.link("python3.x", root+"/versions/"+v+"/bin/python3")
		b.file(root+"/versions/"+v+"/lib/python3.x/os.py", "", 0o644)
	}
}

func (b *bench) virtual(dir, home, program string) {
	b.link(program, dir+"/bin/python3")
	b.file(dir+"/pyvenv.cfg", "home = "+filepath.Join(b.host.Dir, home)+"\ninclude-system-site-packages = false\n", 0o644)
	if err := os.MkdirAll(filepath.Join(b.host.Dir, dir, "lib"), 0o755); err != nil {
		b.t.Fatal(err)
	}
}

// needs describes what a spec shows of an interpreter, with paths relative to the bench.
type needs struct {
	program  string // the command's first word
	prefixes []string
	links    []string // SOURCE:TARGET
	bin      string   // what comes before the usual PATH
}

func (b *bench) needs(args ...string) needs {
	b.t.Helper()
	spec := b.spec(args...)
	shorten := func(path string) string { return strings.TrimPrefix(path, b.host.Dir+"/") }
	n := needs{program: shorten(spec.Command[0])}
	for _, p := range spec.Files.Prefixes {
		n.prefixes = append(n.prefixes, shorten(p))
	}
	for _, l := range spec.Files.Binds {
		if !l.ReadOnly {
			b.t.Errorf("%+v is writable", l)
		}
		n.links = append(n.links, shorten(l.Source)+":"+shorten(l.Target))
	}
	bin, _ := strings.CutSuffix(variables(spec)["PATH"], resolve.PATH)
	n.bin = shorten(strings.TrimSuffix(bin, ":"))
	return n
}

func TestInterpreters(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(*bench)
		args []string
		want needs
	}{
		{"of the base system", func(*bench) {}, nil, needs{program: "base/bin/python3"}},
		{"pyenv's global version", func(b *bench) {
			b.pyenv("home/.pyenv", "3.9.1", "3.12.4")
			b.file("home/.pyenv/version", "3.12.4\n", 0o644)
			b.path("home/.pyenv/shims", "base/bin")
		}, nil, needs{"home/.pyenv/versions/3.12.4/bin/python3", []string{"home/.pyenv/versions/3.12.4"}, nil, "home/.pyenv/versions/3.12.4/bin"}},
		{"the script's own version file", func(b *bench) {
			b.pyenv("home/.pyenv", "3.9.1", "3.12.4")
			b.file("home/.pyenv/version", "3.12.4\n", 0o644)
			b.file("work/.python-version", "# the old one\n3.9.1\n", 0o644)
			b.path("home/.pyenv/shims", "base/bin")
		}, nil, needs{"home/.pyenv/versions/3.9.1/bin/python3", []string{"home/.pyenv/versions/3.9.1"}, nil, "home/.pyenv/versions/3.9.1/bin"}},
		{"the caller's variable comes first, the newest of a prefix", func(b *bench) {
			b.pyenv("home/.pyenv", "3.9.1", "3.12.4", "3.12.11")
			b.file("work/.python-version", "3.9.1\n", 0o644)
			b.path("home/.pyenv/shims", "base/bin")
			b.setenv("PYENV_VERSION=none:3.12")
		}, nil, needs{"home/.pyenv/versions/3.12.11/bin/python3", []string{"home/.pyenv/versions/3.12.11"}, nil, "home/.pyenv/versions/3.12.11/bin"}},
		{"a shim that says system leaves it to PATH", func(b *bench) {
			b.pyenv("home/.pyenv", "3.9.1")
			b.file("home/.pyenv/version", "system\n", 0o644)
			b.path("home/.pyenv/shims", "base/bin")
		}, nil, needs{program: "base/bin/python3"}},
		{"a link to a shim, its root unusual", func(b *bench) {
			b.pyenv("tools/versions-of-python", "3.9.1")
			b.file("tools/versions-of-python/version", "3.9.1\n", 0o644)
			b.link(b.host.Dir+"/tools/versions-of-python/shims/python3", "links/python3")
			b.path("links")
		}, nil, needs{"tools/versions-of-python/versions/3.9.1/bin/python3", []string{"tools/versions-of-python/versions/3.9.1"}, nil, "tools/versions-of-python/versions/3.9.1/bin"}},
		{"a virtual environment of the base's Python", func(b *bench) {
			b.virtual("work/.venv", "base/bin", b.host.Dir+"/base/bin/python3")
		}, []string{"--python", "work/.venv"}, needs{"work/.venv/bin/python3", []string{"work/.venv"}, nil, "work/.venv/bin"}},
		{"a virtual environment of pyenv's", func(b *bench) {
			b.pyenv("home/.pyenv", "3.9.1")
			b.virtual("venv", "home/.pyenv/versions/3.9.1/bin", b.host.Dir+"/home/.pyenv/versions/3.9.1/bin/python3")
		}, []string{"--python", "venv/bin/python3"}, needs{"venv/bin/python3", []string{"venv", "home/.pyenv/versions/3.9.1"}, nil, "venv/bin"}},
		{"a virtual environment within the version that it is of", func(b *bench) {
			b.pyenv("home/.pyenv", "3.9.1")
			b.virtual("home/.pyenv/versions/3.9.1/envs/mine", "home/.pyenv/versions/3.9.1/bin", b.host.Dir+"/home/.pyenv/versions/3.9.1/bin/python3")
			b.link(b.host.Dir+"/home/.pyenv/versions/3.9.1/envs/mine", "home/.pyenv/versions/mine")
			b.path("home/.pyenv/shims")
			b.setenv("PYENV_VERSION=mine")
		}, nil, needs{"home/.pyenv/versions/3.9.1/envs/mine/bin/python3", []string{"home/.pyenv/versions/3.9.1"}, nil, "home/.pyenv/versions/3.9.1/envs/mine/bin"}},
		{"a chain through a linked directory", func(b *bench) {
			b.program("share/cpython-3.12.4/bin/python3.12")
			b.file("share/cpython-3.12.4/lib/python3.12/os.py", "", 0o644)
			b.link("cpython-3.12.4", "share/cpython-3.12")
			b.virtual("venv", "share/cpython-3.12/bin", b.host.Dir+"/share/cpython-3.12/bin/python3.12")
			b.path("venv/bin")
		}, nil, needs{"venv/bin/python3", []string{"venv", "share/cpython-3.12.4"}, []string{"share/cpython-3.12.4:share/cpython-3.12"}, "venv/bin"}},
		{"conda", func(b *bench) {
			b.program("conda/bin/python3")
			b.file("conda/conda-meta/history", "", 0o644)
			b.path("conda/bin", "base/bin")
		}, nil, needs{"conda/bin/python3", []string{"conda"}, nil, "conda/bin"}},
		{"a home directory is no prefix: the next in PATH", func(b *bench) {
			b.program("home/.local/bin/python3")
			b.file("home/.local/lib/x", "", 0o644)
			b.program("home/bin/python3")
			b.file("home/lib/x", "", 0o644)
			b.file("home/.profile", "", 0o644)
			b.path("home/.local/bin", "home/bin", "base/bin")
		}, nil, needs{program: "base/bin/python3"}},
		{"a virtual environment made of copies", func(b *bench) {
			b.pyenv("home/.pyenv", "3.9.1")
			b.program("venv/bin/python3")
			b.file("venv/pyvenv.cfg", "home = "+b.host.Dir+"/home/.pyenv/versions/3.9.1/bin\n", 0o644)
			b.path("venv/bin")
		}, nil, needs{"venv/bin/python3", []string{"venv", "home/.pyenv/versions/3.9.1"}, nil, "venv/bin"}},
	} {
		b := interpreterBench(t)
		c.make(b)
		if got := b.needs(append(c.args, "work/agent.py")...); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n%+v, want\n%+v", c.name, got, c.want)
		}
	}
}

// Root must not execute a program just because it lies in the current directory.
func TestRelativeEntriesOfPATHAreNotFollowed(t *testing.T) {
	b := interpreterBench(t)
	b.pyenv("here", "1")
	t.Chdir(b.host.Dir)
	b.setenv("PATH=here/versions/1/bin::." + ":" + b.host.Dir + "/base/bin")
	if got := b.needs("work/agent.py"); got.program != "base/bin/python3" {
		t.Errorf("%+v", got)
	}
	b.path("here/versions/1/bin", "base/bin")
	if got := b.needs("work/agent.py"); got.program != "here/versions/1/bin/python3" {
		t.Errorf("the control: %+v", got)
	}
}

func TestInterpretersThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(*bench)
		want string
	}{
		{"version not installed", func(b *bench) {
			b.pyenv("home/.pyenv", "3.9.1")
			b.file("work/.python-version", "3.8\n", 0o644)
			b.path("home/.pyenv/shims")
		}, "python3 is not in version 3.8, which $PWD/work/.python-version asks for"},
		{"a version is a name, not a path", func(b *bench) {
			b.pyenv("home/.pyenv", "3.9.1")
			b.pyenv("evil", "1")
			b.path("home/.pyenv/shims")
			b.setenv("PYENV_VERSION=../../../evil/versions/1")
		}, "is not in version ../../../evil/versions/1, which PYENV_VERSION asks for"},
		{"no version at all", func(b *bench) {
			b.pyenv("home/.pyenv", "3.9.1")
			b.path("home/.pyenv/shims")
		}, "python3 is not in version system, which pyenv asks for"},
		{"a home directory", func(b *bench) {
			b.program("home/.local/bin/python3")
			b.path("home/.local/bin")
		}, "$PWD/home/.local contains more than an interpreter"},
		{"a directory of anything", func(b *bench) {
			b.program("stuff/bin/python3")
			b.path("stuff/bin")
		}, "$PWD/stuff is not the prefix of an interpreter"},
		{"not in bin", func(b *bench) {
			b.program("stuff/python3")
			b.path("stuff")
		}, "it is not in a directory called bin"},
	} {
		b := interpreterBench(t)
		c.make(b)
		if got := strings.ReplaceAll(b.refuse("work/agent.py"), b.host.Dir, "$PWD"); !strings.Contains(got, c.want) || !strings.Contains(got, "hint: ") {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

func TestNodeVersionManagers(t *testing.T) {
	b := interpreterBench(t)
	b.file("work/agent.mjs", "1\n", 0o644)
	b.program("home/.nvm/versions/node/v20.1.0/bin/node")
	b.file("home/.nvm/versions/node/v20.1.0/lib/node_modules/npm/x", "", 0o644)
	b.path("home/.nvm/versions/node/v20.1.0/bin", "base/bin")
	want := needs{"home/.nvm/versions/node/v20.1.0/bin/node", []string{"home/.nvm/versions/node/v20.1.0"}, nil, "home/.nvm/versions/node/v20.1.0/bin"}
	if got := b.needs("work/agent.mjs"); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

// A command keeps its name, unless on the host that name stands for an interpreter outside the
// base system.
func TestCommandsBehindTheDashes(t *testing.T) {
	b := interpreterBench(t)
	b.pyenv("home/.pyenv", "3.9.1")
	b.file("home/.pyenv/version", "3.9.1\n", 0o644)
	b.file("home/.pyenv/shims/pip", "#!/bin/sh\n", 0o755)
	b.program("home/.pyenv/versions/3.9.1/bin/pip")
	b.program("stuff/bin/tool")
	b.path("home/.pyenv/shims", "stuff/bin", "base/bin")
	outside := []string{"home/.pyenv/versions/3.9.1"}
	const bin = "home/.pyenv/versions/3.9.1/bin"
	for command, want := range map[string]needs{
		"python3":                 {bin + "/python3", outside, nil, bin},
		"pip":                     {bin + "/pip", outside, nil, bin},
		"bash":                    {program: "bash"},
		"tool":                    {program: "tool"},
		"nothing":                 {program: "nothing"},
		"./python3":               {program: "./python3"},
		"/usr/bin/python3":        {program: "/usr/bin/python3"},
		b.host.Dir + "/work/x.py": {program: "work/x.py"},
		b.host.Dir + "/home/.pyenv/versions/3.9.1/bin/python3": {bin + "/python3", outside, nil, bin},
	} {
		if got := b.needs("--", command, "arg"); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", command, got, want)
		}
	}
	if got := b.needs("--python", "base/bin/python3.11", "--", "python3"); got.program != "base/bin/python3.11" {
		t.Errorf("--python: %+v", got)
	}
}

// With --rootfs, nothing of the host is searched.
func TestInterpretersInARootfs(t *testing.T) {
	b := interpreterBench(t)
	b.file("root/bin/sh", "", 0o755)
	b.file("work/line", "#!/opt/x -u\n", 0o755)
	b.file("work/a.sh", "echo\n", 0o644)
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"work/agent.py"}, []string{"python3", "/workspace/agent.py"}},
		{[]string{"work/a.sh"}, []string{"sh", "/workspace/a.sh"}},
		{[]string{"work/agent.py", "--python", "/opt/py"}, []string{"/opt/py", "/workspace/agent.py"}},
		{[]string{"work/line"}, []string{"/opt/x", "-u", "/workspace/line"}},
		{[]string{"--", "python3", "-c", "1"}, []string{"python3", "-c", "1"}},
		{[]string{"--python", "/opt/py", "--", "python3"}, []string{"/opt/py"}},
	} {
		spec := b.spec(append([]string{"--rootfs", "root"}, c.args...)...)
		if !slices.Equal(spec.Command, c.want) || len(spec.Files.Prefixes) != 0 {
			t.Errorf("%q: %q, %q", c.args, spec.Command, spec.Files.Prefixes)
		}
	}
}
