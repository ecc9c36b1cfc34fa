//go:build root

package rootfs

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestDiskLimitHolds(t *testing.T) {
	b := newBench(t)
	cfg := testConfig(b.dir)
	cfg.DiskBytes = 16 << 20
	tree := b.mount(cfg)
	// Control: an amount well within the limit is written.
	b.must(tree, sandboxAgent, "for i in 1 2 3 4; do head -c 2097152 /usr/bin/perl; done >/tmp/a")
	used, err := tree.Usage()
	if err != nil || used.Bytes < 5<<20 {
		t.Errorf("usage %+v (%v) after writing", used, err)
	}
	b.refused(tree, sandboxAgent, "while cat /usr/bin/perl; do :; done >/workspace/b; exit 1", "No space left on device")
	b.refused(tree, sandboxRoot, "cat /usr/bin/perl >/usr/bin/c", "No space left on device")
	info, err := os.Stat(cfg.image())
	if err != nil || info.Size() != cfg.DiskBytes {
		t.Errorf("the image has %d bytes (%v), want %d", info.Size(), err, cfg.DiskBytes)
	}
	// Freed space can be used again.
	b.must(tree, sandboxAgent, "rm /tmp/a /workspace/b && cat /usr/bin/perl >/workspace/b")
}

func TestInodeLimitHolds(t *testing.T) {
	b := newBench(t)
	cfg := testConfig(b.dir)
	cfg.DiskBytes = 16 << 20
	tree := b.mount(cfg)
	r := b.inside(tree, sandboxAgent, "cd /tmp; i=0; while true >$i; do i=$((i+1)); done 2>err; echo $i; cat err")
	made, _ := strconv.ParseInt(strings.Fields(r.out)[0], 10, 64)
	limit := cfg.DiskBytes / inodeRatio(cfg.DiskBytes)
	if !strings.Contains(r.out, "No space left on device") || made > limit || made < limit/2 {
		t.Errorf("made %d files of at most %d: %s", made, limit, r.out)
	}
	if used, err := tree.Usage(); err != nil || used.Inodes < made {
		t.Errorf("usage %+v (%v) with %d files", used, err, made)
	}
}

func TestTmpfs(t *testing.T) {
	b := newBench(t)
	cfg := testConfig(b.dir)
	cfg.Tmpfs = []Tmpfs{{Target: "/scratch/deep", SizeBytes: 1 << 20}, {Target: "/tmp", Mode: 0o700}, {Target: "/dev-like", SizeBytes: 1 << 20}}
	tree := b.mount(cfg)
	b.must(tree, sandboxAgent, "echo x >/scratch/deep/a")
	b.refused(tree, sandboxAgent, "cat /usr/bin/perl >/scratch/deep/b", "No space left on device")
	b.refused(tree, sandboxAgent, "ls /tmp", "Permission denied")
	if out := b.must(tree, sandboxRoot, "stat -f -c %b /tmp"); strings.TrimSpace(out) != strconv.FormatInt(cfg.MemoryBytes/2/int64(os.Getpagesize()), 10) {
		t.Errorf("a tmpfs without a size has %s pages", out)
	}
	if changed, err := tree.Changed(); changed || err != nil {
		t.Errorf("mount points of ours count as a change: %v %v", changed, err)
	}
}

// A set-user-ID program of the host, or one that the agent makes, gains no privilege, and a
// device node in the layer is no device.
func TestNoSetuidNoDevices(t *testing.T) {
	b := newBench(t)
	opt := b.mkdir("opt", nil)
	if out, err := hostCommand("sh", "-c", `mknod -m 666 "$1/zero" c 1 5 && cp /usr/bin/id "$1/id" && chmod 4755 "$1/id"`, "sh", opt); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// Control: outside it is a device.
	if out, err := hostCommand("head", "-c", "1", filepath.Join(opt, "zero")); err != nil || out != "\x00" {
		t.Fatalf("control: the device reads %q (%v)", out, err)
	}
	b.fakeHost(map[string]string{"/opt": opt})
	cfg := testConfig(b.dir)
	cfg.Binds = []Bind{{Source: opt, Target: "/bound"}}
	tree := b.mount(cfg)
	for _, dir := range []string{"/opt", "/bound"} {
		b.refused(tree, sandboxRoot, "head -c 1 "+dir+"/zero", "Permission denied")
		if out := b.must(tree, 2000, dir+"/id -u"); out != "2000\n" {
			t.Errorf("a set-user-ID program in %s ran as %s", dir, out)
		}
	}
}
