//go:build root

package rootfs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/gitdir"
	"clove.run/clove/internal/nsthread"
)

// overlayOver mounts an overlay over dir in the bench's namespace, as the root of a container
// is one. The kernel cannot id-map it.
func (b *bench) overlayOver(dir string) {
	b.t.Helper()
	scratch := b.mkdir("scratch", nil)
	b.do(func() error {
		if err := unix.Mount("none", scratch, "tmpfs", 0, ""); err != nil {
			return err
		}
		for _, name := range []string{"upper", "work"} {
			if err := os.Mkdir(filepath.Join(scratch, name), 0o755); err != nil {
				return err
			}
		}
		options := fmt.Sprintf("lowerdir=%s,upperdir=%s/upper,workdir=%s/work", dir, scratch, scratch)
		return unix.Mount("none", dir, "overlay", 0, options)
	})
}

func TestBaseOnAnOverlayIsShownAsItIs(t *testing.T) {
	b := newBench(t)
	opt := b.mkdir("opt", map[string]string{"open": "x\n", "closed": "SECRET"})
	if err := os.Chmod(filepath.Join(opt, "closed"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.fakeHost(map[string]string{"/opt": opt})
	b.overlayOver("/opt")
	tree := b.mount(testConfig(b.dir))
	if !slices.Equal(tree.Unmapped, []string{"/opt"}) {
		t.Errorf("unmapped %q", tree.Unmapped)
	}
	if out := b.must(tree, sandboxAgent, "cat /opt/open"); out != "x\n" {
		t.Errorf("got %q", out)
	}
	b.refused(tree, sandboxRoot, "cat /opt/closed", "Permission denied")
	b.refused(tree, sandboxRoot, "echo y >/opt/open", "Permission denied")
}

// Root of the sandbox installs packages into the base, so it must own it: it gets a copy.
func TestBaseOnAnOverlayIsCopiedForRoot(t *testing.T) {
	b := newBench(t)
	opt := b.mkdir("opt", map[string]string{"open": "x\n", "closed": "y\n"})
	if err := os.Chmod(filepath.Join(opt, "closed"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.fakeHost(map[string]string{"/opt": opt})
	b.overlayOver("/opt")
	cfg := testConfig(b.dir)
	cfg.AgentUID, cfg.AgentGID = 0, 0
	tree := b.mount(cfg)
	out := b.must(tree, sandboxRoot, "cat /opt/closed && echo z >>/opt/open && rm /opt/closed && touch /opt/new && stat -c %u /opt/open /opt/new")
	if out != "y\n0\n0\n" {
		t.Errorf("got %q", out)
	}
	if data, err := os.ReadFile(filepath.Join(opt, "closed")); err != nil || string(data) != "y\n" {
		t.Errorf("the host's file reads %q (%v)", data, err)
	}
	if got, want := b.diff(tree.Uppers()), []string{"D /opt/closed", "A /opt/new", "C /opt/open"}; !slices.Equal(got, want) {
		t.Errorf("diff %q, want %q", got, want)
	}
}

func TestBindFromAnOverlayIsReadOnlyOrRefused(t *testing.T) {
	b := newBench(t)
	files := map[string]string{"open": "x\n", "closed": "SECRET"}
	source, plain := b.mkdir("data", files), b.mkdir("plain", files)
	for _, dir := range []string{source, plain} {
		if err := os.Chmod(filepath.Join(dir, "closed"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.overlayOver(source)
	cfg := testConfig(b.dir)
	cfg.Binds = []Bind{{Source: source, Target: "/data"}, {Source: plain, Target: "/plain"}}
	if _, err := b.tryMount(cfg); !errors.Is(err, ErrUnmappable) {
		t.Errorf("a writable bind: %v", err)
	}
	cfg.Binds[0].ReadOnly = true
	tree := b.mount(cfg)
	if out := b.must(tree, sandboxAgent, "cat /data/open"); out != "x\n" {
		t.Errorf("got %q", out)
	}
	b.refused(tree, sandboxRoot, "cat /data/closed", "Permission denied")
	b.refused(tree, sandboxRoot, "echo y >/data/open", "Read-only file system")
	// Control: if the file system is id-mapped, the files belong to the agent.
	if out := b.must(tree, sandboxAgent, "cat /plain/closed"); out != "SECRET" {
		t.Errorf("control: got %q", out)
	}
}

func TestWorkspaceOnAnOverlayIsCopied(t *testing.T) {
	b := newBench(t)
	cfg := testConfig(b.dir)
	cfg.Workspace = b.mkdir("ws", map[string]string{"a": "x\n", "sub/b": "y\n"})
	if err := os.Symlink("/etc/passwd", filepath.Join(cfg.Workspace, "link")); err != nil {
		t.Fatal(err)
	}
	b.overlayOver(cfg.Workspace)
	tree := b.mount(cfg)
	if !slices.Equal(tree.Unmapped, []string{cfg.Workspace}) {
		t.Errorf("unmapped %q", tree.Unmapped)
	}
	b.must(tree, sandboxAgent, "cd /workspace && cat a sub/b && test -L link && echo z >a && echo z >new")
	if data, err := os.ReadFile(filepath.Join(cfg.Workspace, "a")); err != nil || string(data) != "x\n" {
		t.Errorf("the host's file reads %q (%v)", data, err)
	}
	if got, want := b.diff(tree.Uppers()), []string{"C /workspace/a", "A /workspace/new"}; !slices.Equal(got, want) {
		t.Errorf("diff %q, want %q", got, want)
	}
}

// The repository of a user's worktree is shown unmapped where it cannot be id-mapped, as the
// workspace is copied then. The control is a bind that the user requested.
func TestRepositoryOnAnOverlayIsShown(t *testing.T) {
	b := newBench(t)
	user := &nsthread.Identity{UID: 64001, GID: 64001}
	repo, ws := b.mkdir("repo", map[string]string{"a": "x\n"}), filepath.Join(b.dir, "ws")
	script := `git init -q "$1" && cd "$1" && git add a && git -c user.name=a -c user.email=a@b commit -q -m first && git worktree add -q "$2" && chown -R 64001:64001 "$1" "$2"`
	if out, err := exec.Command("sh", "-c", script, "sh", repo, ws).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b.overlayOver(filepath.Join(repo, ".git/objects"))
	cfg := testConfig(b.dir)
	cfg.Workspace, cfg.User = ws, user
	cfg.Binds = []Bind{{Source: filepath.Join(repo, ".git/objects"), Target: "/data", ReadOnly: true}}
	if _, err := b.tryMount(cfg); !errors.Is(err, ErrUnmappable) {
		t.Errorf("control: %v", err)
	}
	cfg.Binds = nil
	tree := b.mount(cfg)
	if want := filepath.Join(repo, ".git/objects"); !slices.Contains(tree.Unmapped, want) {
		t.Errorf("unmapped %q", tree.Unmapped)
	}
	at := slices.IndexFunc(tree.Uppers(), func(u Upper) bool { return strings.Contains(u.Prefix, "/repo") })
	shared := filepath.Join(tree.Uppers()[max(0, at)].Prefix, gitdir.SharedObjects)
	if out := b.must(tree, sandboxAgent, "find "+shared+" -type f -readable | wc -l"); out != "3\n" {
		t.Errorf("the agent reads %q objects in %s", out, shared)
	}
}

func TestWorkspaceThatDoesNotFitIsAnError(t *testing.T) {
	b := newBench(t)
	cfg := testConfig(b.dir)
	cfg.DiskBytes = 16 << 20
	cfg.Workspace = b.mkdir("ws", map[string]string{"large": strings.Repeat("x", 20<<20)})
	b.overlayOver(cfg.Workspace)
	if _, err := b.tryMount(cfg); err == nil || !errors.Is(err, ErrUnmappable) || !strings.Contains(err.Error(), "No space left on device") {
		t.Errorf("got %v", err)
	}
	// Control: it fits into a larger layer.
	cfg.DiskBytes = 64 << 20
	b.mount(cfg)
}
