//go:build root

package rootfs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ownPlaces are the writable places that this package makes.
var ownPlaces = []string{"/workspace", "/tmp", "/var/tmp", "/home/agent"}

// TestOnlyTheNamedPlacesAreWritable: of all lists with one place, over the base and over a
// root of the caller's, with and without a workspace. The control is the list of none.
func TestOnlyTheNamedPlacesAreWritable(t *testing.T) {
	for name, rootfs := range map[string]bool{"the base": false, "a root": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			cfg := testConfig(b.dir)
			if rootfs {
				cfg = b.smallRoot(nil)
			}
			cfg.ReadOnly = true
			for _, cfg.Workspace = range []string{"", b.mkdir("ws", map[string]string{"old": "x"})} {
				for _, cfg.Writable = range [][]string{nil, {"/workspace"}, {"/tmp"}, {"/var/tmp"}, {"/home/agent"}, {"/dev/shm"}} {
					b.onlyWritable(cfg)
				}
			}
		})
	}
}

// onlyWritable writes to every place, as the agent and as root.
func (b *bench) onlyWritable(cfg Config) {
	b.t.Helper()
	tree, err := b.tryMount(cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	defer b.do(tree.Discard)
	for _, place := range ownPlaces {
		for _, uid := range []uint32{sandboxAgent, sandboxRoot} {
			if cfg.Writable == nil || slices.Contains(cfg.Writable, place) {
				b.must(tree, uid, "touch "+place+"/new && rm "+place+"/new")
			} else {
				b.refused(tree, uid, "touch "+place+"/new", "Read-only file system")
			}
		}
	}
	for _, dir := range []string{"/", "/etc", "/usr"} {
		b.refused(tree, sandboxRoot, "touch "+dir+"/new", "Read-only file system")
	}
}

// TestRequestedMountsStayWritable in a root that leaves nothing but /tmp writable, also where
// they cover a part of the root.
func TestRequestedMountsStayWritable(t *testing.T) {
	b := newBench(t)
	data := b.mkdir("data", nil)
	cfg := testConfig(b.dir)
	cfg.ReadOnly, cfg.Writable, cfg.Workspace = true, []string{"/tmp"}, b.mkdir("ws", map[string]string{"old": "x"})
	cfg.Binds = []Bind{{Source: data, Target: "/workspace/data"}, {Source: data, Target: "/ro", ReadOnly: true}}
	cfg.Tmpfs = []Tmpfs{{Target: "/home/agent", SizeBytes: 1 << 20}, {Target: "/opt", SizeBytes: 1 << 20}, {Target: "/cache/deep", SizeBytes: 1 << 20}}
	tree := b.mount(cfg)
	b.must(tree, sandboxAgent, "touch /workspace/data/new /home/agent/new /opt/new /cache/deep/new /tmp/new")
	for _, path := range []string{"/workspace/new", "/var/tmp/new", "/cache/new", "/ro/other"} {
		b.refused(tree, sandboxRoot, "touch "+path, "Read-only file system")
	}
	if got := names(t, data); !slices.Equal(got, []string{"new"}) {
		t.Errorf("the bind has %q", got)
	}
	// The bind's mount point is all that the workspace's overlay has.
	if got := b.diff(tree.Uppers()); slices.ContainsFunc(got, func(line string) bool { return strings.Contains(line, "/workspace") && line != "A /workspace/data" }) {
		t.Errorf("diff %q", got)
	}
}

// TestAWritablePlaceIsReachedByNoLink: in a caller's root /var/tmp may lead to another place.
// The control is a list without it.
func TestAWritablePlaceIsReachedByNoLink(t *testing.T) {
	b := newBench(t)
	cfg := b.smallRoot(map[string]string{"var/keep": ""})
	if err := os.Symlink("/tmp", filepath.Join(cfg.Rootfs, "var/tmp")); err != nil {
		t.Fatal(err)
	}
	cfg.ReadOnly, cfg.Writable = true, []string{"/tmp"}
	b.onlyThese(cfg, "/tmp", "/var/tmp") // one place with two names
	cfg.Writable = []string{"/home/agent"}
	b.onlyThese(cfg, "/home/agent")
	cfg.Writable = []string{"/var/tmp"}
	if _, err := b.tryMount(cfg); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("got %v", err)
	}
}

// onlyThese checks which places root inside can write to.
func (b *bench) onlyThese(cfg Config, writable ...string) {
	b.t.Helper()
	tree, err := b.tryMount(cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	defer b.do(tree.Discard)
	for _, place := range ownPlaces {
		if r := b.inside(tree, sandboxRoot, "touch "+place+"/new"); (r.status == 0) != slices.Contains(writable, place) {
			b.t.Errorf("%q: %s: %+v", cfg.Writable, place, r)
		}
	}
}

// TestAKeptLayerStaysSealed: the next start shows what the earlier ones wrote, and writes to
// the named place only.
func TestAKeptLayerStaysSealed(t *testing.T) {
	b := newBench(t)
	cfg := b.kept()
	cfg.ReadOnly, cfg.Writable = true, []string{"/tmp"}
	for i := range 2 {
		tree, err := b.again(cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		b.must(tree, sandboxAgent, ofTheAgent)
		b.refused(tree, sandboxAgent, "echo two >>/workspace/mine", "Read-only file system")
		b.refused(tree, sandboxAgent, "touch /home/agent/own/x", "Read-only file system")
		if got := b.must(tree, sandboxAgent, "echo start >>/tmp/starts; wc -l </tmp/starts"); got != []string{"1\n", "2\n"}[i] {
			t.Errorf("start %d: %q", i, got)
		}
		b.do(tree.Close)
	}
	b.do(func() error { return RemoveLayer(filepath.Join(cfg.StateDir, "layers", cfg.ID+".img")) })
}
