//go:build root

package rootfs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// smallRoot makes a root file system that can run /bin/sh: the host's own, which the prefixes
// bind into it.
func (b *bench) smallRoot(files map[string]string) Config {
	root := b.mkdir("rootfs", files)
	for _, link := range []string{"bin", "lib", "lib64", "sbin"} {
		if err := os.Symlink("usr/"+link, filepath.Join(root, link)); err != nil {
			b.t.Fatal(err)
		}
	}
	cfg := testConfig(b.dir)
	cfg.Rootfs = root
	cfg.Prefixes = []string{"/usr"}
	return cfg
}

func TestRootfsReplacesTheBase(t *testing.T) {
	b := newBench(t)
	cfg := b.smallRoot(map[string]string{"etc/os-release": "own\n", "srv/data": "1\n"})
	tree := b.mount(cfg)
	if got := b.must(tree, sandboxRoot, "cat /etc/os-release /etc/hostname; echo 2 >/srv/data"); got != "own\nbox\n" {
		t.Errorf("got %q", got)
	}
	b.must(tree, sandboxAgent, "touch /workspace/a /tmp/a /var/tmp/a /home/agent/a")
	b.refused(tree, sandboxRoot, "cat /etc/passwd", "No such file")
	if data, err := os.ReadFile(filepath.Join(cfg.Rootfs, "srv/data")); err != nil || string(data) != "1\n" {
		t.Errorf("the directory's file reads %q (%v)", data, err)
	}
	if got := names(t, cfg.Rootfs); !slices.Equal(got, []string{"bin", "etc", "lib", "lib64", "sbin", "srv"}) {
		t.Errorf("the directory holds %q", got)
	}
}

func TestHostileRootfsReachesNothingOutside(t *testing.T) {
	b := newBench(t)
	outside := b.mkdir("outside", map[string]string{"keep": "x"})
	cfg := b.smallRoot(nil)
	for name, link := range map[string]string{
		"workspace": outside, "tmp": outside, "home": "../outside", "data": "../../../../../../../.." + outside,
		"srv": outside, "conf": filepath.Join(outside, "keep"),
	} {
		if err := os.Symlink(link, filepath.Join(cfg.Rootfs, name)); err != nil {
			t.Fatal(err)
		}
	}
	// Control: the same path leads outside if the links are followed.
	if _, err := os.Stat(filepath.Join(cfg.Rootfs, "data", "keep")); err != nil {
		t.Fatalf("control: %v", err)
	}
	b.mkdir("rootfs"+outside, nil) // where the absolute links lead inside
	b.mkdir("rootfs/outside", nil)
	cfg.Workspace = b.mkdir("ws", map[string]string{"a": "x"})
	cfg.Binds = []Bind{{Source: b.mkdir("src", map[string]string{"b": "x"}), Target: "/data/deep/er"}}
	cfg.Tmpfs = []Tmpfs{{Target: "/data/tmpfs", SizeBytes: 1 << 20}}
	tree := b.mount(cfg)
	b.must(tree, sandboxAgent, "test -e /workspace/a && test -e /data/deep/er/b && test -e "+outside+"/deep/er/b && touch /workspace/c"+" /tmp/c")
	if got := names(t, outside); !slices.Equal(got, []string{"keep"}) {
		t.Errorf("outside there is now %q", got)
	}
	if mounts := mountsBelow(t, outside); len(mounts) > 0 {
		t.Errorf("mounted outside: %q", mounts)
	}
	if got := names(t, filepath.Join(cfg.Rootfs, outside)); len(got) > 0 {
		t.Errorf("the directory itself was written: %q", got)
	}
}

func TestRootfsThatCannotBeUsed(t *testing.T) {
	tests := []struct {
		name   string
		make   func(root string) error
		change func(c *Config)
		want   string
	}{
		{"proc is a link", func(root string) error { return os.Symlink("/proc", root+"/proc") }, nil, "its /proc is a symbolic link"},
		{"dev is a file", func(root string) error { return os.WriteFile(root+"/dev", nil, 0o644) }, nil, "its /dev is a file"},
		{"etc is a link", func(root string) error { return os.Symlink("/etc", root+"/etc") }, nil, "its /etc is a symbolic link"},
		{"a target that leads nowhere", func(root string) error { return os.Symlink("/nowhere", root+"/data") },
			func(c *Config) { c.Tmpfs = []Tmpfs{{Target: "/data", SizeBytes: 1 << 20}} }, "leads nowhere"},
		{"a target in a loop", func(root string) error { return os.Symlink("data", root+"/data") },
			func(c *Config) { c.Tmpfs = []Tmpfs{{Target: "/data/x", SizeBytes: 1 << 20}} }, "too many levels"},
		{"a target below a file", func(root string) error { return os.WriteFile(root+"/data", nil, 0o644) },
			func(c *Config) { c.Tmpfs = []Tmpfs{{Target: "/data/x", SizeBytes: 1 << 20}} }, "not a directory"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			cfg := b.smallRoot(nil)
			if err := test.make(cfg.Rootfs); err != nil {
				t.Fatal(err)
			}
			if test.change != nil {
				test.change(&cfg)
			}
			if _, err := b.tryMount(cfg); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}
