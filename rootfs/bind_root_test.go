//go:build root

package rootfs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func ownerOf(t *testing.T, path string) uint32 {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Uid
}

func TestBindsAreTheOwners(t *testing.T) {
	for _, owner := range []int{0, 1000, 4321, 3_000_000_000} {
		b := newBench(t)
		source := b.mkdir("data", map[string]string{"old": "x"})
		for _, path := range []string{source, filepath.Join(source, "old")} {
			if err := os.Chown(path, owner, owner); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(source, 0o700); err != nil {
			t.Fatal(err)
		}
		cfg := testConfig(b.dir)
		cfg.Binds = []Bind{{Source: source, Target: "/data"}, {Source: source, Target: "/look/data", ReadOnly: true}}
		tree := b.mount(cfg)
		b.must(tree, sandboxAgent, "echo y >/data/new && echo y >/data/old && cat /look/data/new")
		b.refused(tree, sandboxAgent, "echo z >/look/data/new", "Read-only file system")
		b.refused(tree, sandboxRoot, "rm /look/data/new", "Read-only file system")
		if got := ownerOf(t, filepath.Join(source, "new")); got != uint32(owner) {
			t.Errorf("a new file belongs to %d, want %d", got, owner)
		}
	}
}

func TestReadOnlyBindHoldsForSubmounts(t *testing.T) {
	b := newBench(t)
	source := b.mkdir("data", map[string]string{"sub/hidden": "x"})
	// A bind mount, because Linux 6.1 cannot id-map a tmpfs.
	open := b.mkdir("open", nil)
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	sub := filepath.Join(source, "sub")
	b.do(func() error { return unix.Mount(open, sub, "", unix.MS_BIND, "") })
	t.Cleanup(func() { b.do(func() error { return unix.Unmount(sub, unix.MNT_DETACH) }) })
	cfg := testConfig(b.dir)
	cfg.Binds = []Bind{{Source: source, Target: "/ro", ReadOnly: true}, {Source: source, Target: "/rw"}}
	tree := b.mount(cfg)
	b.refused(tree, sandboxAgent, "touch /ro/sub/x", "Read-only file system")
	// Control: without the flag the file can be created in the same directory.
	b.must(tree, sandboxAgent, "touch /rw/sub/x && test -e /ro/sub/x && test ! -e /rw/sub/hidden")
}

func TestBindOfAFile(t *testing.T) {
	b := newBench(t)
	dir := b.mkdir("data", map[string]string{"file": "one\n", "secret": "two\n"})
	cfg := testConfig(b.dir)
	cfg.Binds = []Bind{{Source: filepath.Join(dir, "file"), Target: "/etc/deep/conf"}, {Source: filepath.Join(dir, "file"), Target: "/etc/hostname", ReadOnly: true}}
	tree := b.mount(cfg)
	if out := b.must(tree, sandboxAgent, "cat /etc/deep/conf /etc/hostname; ls /etc/deep"); out != "one\none\nconf\n" {
		t.Errorf("got %q", out)
	}
	b.must(tree, sandboxAgent, "echo three >/etc/deep/conf")
	if data, _ := os.ReadFile(filepath.Join(dir, "file")); string(data) != "three\n" {
		t.Errorf("the host's file reads %q", data)
	}
	cfg.ID = "another"
	cfg.Binds = []Bind{{Source: filepath.Join(dir, "file"), Target: "/usr"}}
	if _, err := b.tryMount(cfg); err == nil || !strings.Contains(err.Error(), "directory /usr") {
		t.Errorf("a file on a directory: %v", err)
	}
}

func TestUnmappableFileSystemIsNamed(t *testing.T) {
	b := newBench(t)
	source := b.mkdir("data", nil)
	b.do(func() error { return unix.Mount("none", source, "ramfs", 0, "") })
	cfg := testConfig(b.dir)
	cfg.Binds = []Bind{{Source: source, Target: "/data"}}
	if _, err := b.tryMount(cfg); err == nil || !strings.Contains(err.Error(), "the ramfs file system at "+source) {
		t.Errorf("got %v", err)
	}
}

// A source that is replaced by a link between plan and mount must not be followed.
func TestSourceSwappedForALink(t *testing.T) {
	b := newBench(t)
	source, other := b.mkdir("data", nil), b.mkdir("other", map[string]string{"secret": "x"})
	cfg := testConfig(b.dir)
	cfg.Binds = []Bind{{Source: source, Target: "/data"}}
	var tree *Tree
	err := b.thread.Do(func() error {
		plan, err := NewPlan(cfg)
		if err != nil {
			return err
		}
		if err := os.Remove(source); err != nil {
			return err
		}
		if err := os.Symlink(other, source); err != nil {
			return err
		}
		tree, err = plan.Mount()
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "too many levels of symbolic links") {
		t.Errorf("mounted %v: %v", tree, err)
	}
	// Control: a plan made now resolves the link.
	cfg.ID = "control"
	control := b.mount(cfg)
	b.must(control, sandboxAgent, "cat /data/secret")
}

func TestPrefixOfAClosedHome(t *testing.T) {
	b := newBench(t)
	home := b.mkdir("home", map[string]string{"pyenv/bin/tool": "#!/bin/sh\necho works\n", "private": "x"})
	prefix := filepath.Join(home, "pyenv")
	for path, mode := range map[string]os.FileMode{home: 0o700, prefix: 0o700, prefix + "/bin": 0o700, prefix + "/bin/tool": 0o700} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	cfg := testConfig(b.dir)
	cfg.Prefixes = []string{prefix, "/usr/lib"}
	tree := b.mount(cfg)
	if out := b.must(tree, sandboxAgent, prefix+"/bin/tool"); out != "works\n" {
		t.Errorf("got %q", out)
	}
	b.refused(tree, sandboxRoot, "touch "+prefix+"/x", "Read-only file system")
	if got := strings.Fields(b.must(tree, sandboxRoot, "ls -A "+home)); !slices.Equal(got, []string{"pyenv"}) {
		t.Errorf("beside the prefix there is %q", got)
	}
}

func TestReadOnlyRoot(t *testing.T) {
	b := newBench(t)
	cfg := testConfig(b.dir)
	writable := []string{"/workspace", "/tmp", "/var/tmp", "/home/agent"}
	closed := []string{"/", "/usr", "/etc", "/opt", "/var/lib/dpkg", "/root", "/run"}
	// Control: without the flag root writes everywhere.
	tree := b.mount(cfg)
	for _, dir := range append(closed, writable...) {
		b.must(tree, sandboxRoot, "touch "+dir+"/x")
	}
	cfg.ID, cfg.ReadOnly, cfg.RunDir = "readonly", true, b.mkdir("run2", nil)
	for _, workspace := range []string{"", b.mkdir("ws", map[string]string{"a": "x"})} {
		cfg.Workspace = workspace
		tree, err := b.tryMount(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range closed {
			b.refused(tree, sandboxRoot, "touch "+dir+"/x", "Read-only file system")
		}
		for _, dir := range writable {
			b.must(tree, sandboxRoot, "touch "+dir+"/x")
		}
		b.must(tree, sandboxAgent, "touch /workspace/y /tmp/y /home/agent/y")
		if got := strings.Join(b.diff(tree.Uppers()), ", "); !strings.Contains(got, "A /home/agent/y") || !strings.Contains(got, "A /workspace/y") {
			t.Errorf("diff %s", got)
		}
		b.do(tree.Discard)
	}
}
