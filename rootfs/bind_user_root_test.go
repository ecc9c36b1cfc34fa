//go:build root

package rootfs

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/nsthread"
)

const bindUser = 4321

// userConfig is a configuration whose host paths were named by bindUser.
func userConfig(b *bench, binds ...Bind) Config {
	cfg := testConfig(b.dir)
	cfg.User = &nsthread.Identity{UID: bindUser, GID: bindUser}
	cfg.Binds = binds
	return cfg
}

// own sets the owner and mode of a path.
func own(t *testing.T, path string, id int, mode os.FileMode) {
	t.Helper()
	for _, err := range []error{os.Chown(path, id, id), os.Chmod(path, mode)} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Behind a user's bind the agent has the user's rights, whichever id it has inside. The
// controls: the same directory named by root.
func TestBindOfAUserIsTheUsers(t *testing.T) {
	b := newBench(t)
	dir := b.mkdir("data", map[string]string{"mine": "mine\n", "shown": "shown\n", "secret": "SECRET\n", "closed/file": "SECRET\n", "theirs/file": "x"})
	own(t, dir, bindUser, 0o755)
	own(t, filepath.Join(dir, "mine"), bindUser, 0o600)
	own(t, filepath.Join(dir, "secret"), 0, 0o600)
	own(t, filepath.Join(dir, "closed"), 0, 0o700)
	own(t, filepath.Join(dir, "theirs"), 0, 0o755)
	tree := b.mount(userConfig(b, Bind{Source: dir, Target: "/data"}, Bind{Source: dir, Target: "/look", ReadOnly: true}))
	b.must(tree, sandboxAgent, "cat /data/mine /data/shown && echo new >/data/new && chmod 700 /data/mine && cat /look/new")
	b.refused(tree, sandboxAgent, "echo x >/look/new", "Read-only file system")
	for _, uid := range []uint32{sandboxAgent, sandboxRoot} {
		b.refused(tree, uid, "cat /data/secret", "Permission denied")
		b.refused(tree, uid, "cat /data/closed/file", "Permission denied")
		b.refused(tree, uid, "echo x >/data/shown", "Permission denied")
		b.refused(tree, uid, "touch /data/theirs/x", "touch") // EACCES, or EOVERFLOW: its id is not mapped
		b.refused(tree, uid, "chmod 777 /data/theirs", "chmod")
	}
	b.refused(tree, sandboxRoot, "touch /data/roots", "touch")
	b.refused(tree, sandboxRoot, "chown 0:0 /data/new", "chown")
	if got := ownerOf(t, filepath.Join(dir, "new")); got != bindUser {
		t.Errorf("a new file belongs to %d", got)
	}
	control := testConfig(b.dir)
	control.ID, control.RunDir, control.Binds = "control", b.mkdir("run2", nil), []Bind{{Source: filepath.Join(dir, "theirs"), Target: "/theirs"}, {Source: dir, Target: "/data"}}
	roots := b.mount(control)
	b.must(roots, sandboxAgent, "touch /theirs/x")
	b.must(roots, sandboxRoot, "cat /data/secret /data/closed/file")
}

// Root inside, if that is the agent, has the user's rights and no others.
func TestBindOfAUserForRootInside(t *testing.T) {
	b := newBench(t)
	dir := b.mkdir("data", map[string]string{"secret": "SECRET\n", "half": "SECRET\n"})
	own(t, dir, bindUser, 0o755)
	own(t, filepath.Join(dir, "secret"), 0, 0o600)
	// With another group: no capability applies to it, so only its owner's rights count.
	if err := os.Chown(filepath.Join(dir, "half"), 0, bindUser); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "half"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := userConfig(b, Bind{Source: dir, Target: "/data"})
	cfg.AgentUID, cfg.AgentGID = 0, 0
	tree := b.mount(cfg)
	for _, script := range []string{"cat /data/secret", "cat /data/half", "chown 0 /data/secret", "chmod 644 /data/half"} {
		if r := b.inside(tree, sandboxRoot, script); r.status == 0 {
			t.Errorf("%s: %s", script, r.out)
		}
	}
	b.must(tree, sandboxRoot, "echo x >/data/new && chmod 4755 /data/new")
	if got := ownerOf(t, filepath.Join(dir, "new")); got != bindUser {
		t.Errorf("a set-user-ID program of root inside belongs to %d", got)
	}
}

// A path that the user could not open, or that is not a file or directory, is not shown. The
// control is the same bind named by root, where that is possible.
func TestBindThatAUserMayNotHave(t *testing.T) {
	b := newBench(t)
	top := b.mkdir("top", map[string]string{"closed/secret": "SECRET\n", "file": "SECRET\n", "listed/x": "x"})
	path := func(name string) string { return filepath.Join(top, name) }
	own(t, path("closed"), 0, 0o700)
	own(t, path("file"), 0, 0o600)
	own(t, path("listed"), 0, 0o711)
	for link, to := range map[string]string{"link": path("closed"), "shadow": "/etc/shadow", "deep": path("closed/secret")} {
		if err := os.Symlink(to, path(link)); err != nil {
			t.Fatal(err)
		}
	}
	listener, err := net.Listen("unix", path("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for _, err := range []error{unix.Mkfifo(path("fifo"), 0o666), unix.Mknod(path("device"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3)))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"socket", "fifo", "device"} {
		own(t, path(name), bindUser, 0o666)
	}
	for source, want := range map[string]string{
		path("closed"): "permission denied", path("file"): "permission denied", path("listed"): "permission denied", path("link"): "permission denied",
		path("shadow"): "permission denied", path("deep"): "permission denied", path("closed/secret"): "permission denied", path("link/secret"): "permission denied",
		path("socket"): "neither a directory nor", path("fifo"): "neither a directory nor", path("device"): "neither a directory nor",
		"/": "the whole host", "/proc/self": "the kernel's", "/dev/null": "the kernel's",
		filepath.Join(b.dir, "state"): "clove's own directory", filepath.Join(b.dir, "run"): "clove's own directory", b.dir: "clove's own directory",
	} {
		for _, readOnly := range []bool{false, true} {
			cfg := userConfig(b, Bind{Source: source, Target: "/data", ReadOnly: readOnly})
			tree, err := b.tryMount(cfg)
			if err == nil {
				b.do(tree.Discard)
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", source, err, want)
			}
			if want != "permission denied" && want != "neither a directory nor" {
				continue
			}
			cfg.User = nil
			if tree, err = b.tryMount(cfg); err != nil {
				t.Errorf("the control, %s named by root: %v", source, err)
				continue
			}
			b.do(tree.Discard)
		}
	}
}

// If the source is replaced between plan and mount, the replacement is opened with the user's
// rights, too. The control is the same exchange with root's plan.
func TestBindOfAUserSwapped(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct {
		what, text string
		swap       func(source, secret string) error
	}{
		{"a link to a closed directory", "symbolic links", func(source, secret string) error { return os.Symlink(secret, source) }},
		{"a closed directory", "permission denied", func(source, secret string) error { return os.Rename(secret, source) }},
		{"a pipe", "not a directory", func(source, _ string) error { return unix.Mkfifo(source, 0o666) }},
	} {
		for _, user := range []bool{true, false} {
			source, secret := b.mkdir("source", nil), b.mkdir("secret", map[string]string{"key": "SECRET\n"})
			own(t, source, bindUser, 0o755)
			own(t, secret, 0, 0o700)
			cfg := userConfig(b, Bind{Source: source, Target: "/data"})
			if !user {
				cfg.User = nil
			}
			var tree *Tree
			err := b.thread.Do(func() error {
				plan, err := NewPlan(cfg)
				if err != nil {
					return err
				}
				if err := os.Remove(source); err != nil {
					return err
				}
				if err := c.swap(source, secret); err != nil {
					return err
				}
				tree, err = plan.Mount()
				return err
			})
			if tree != nil {
				b.do(tree.Discard)
			}
			if user && (err == nil || !strings.Contains(err.Error(), c.text)) {
				t.Errorf("%s: %v, want %q", c.what, err, c.text)
			}
			if !user && c.text == "permission denied" && err != nil {
				t.Errorf("the control, %s: %v", c.what, err)
			}
			for _, dir := range []string{source, secret} {
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// A file that another user takes over, or a device, between plan and mount.
func TestBindOfAUsersFileSwapped(t *testing.T) {
	b := newBench(t)
	dir := b.mkdir("data", nil)
	file := filepath.Join(dir, "file")
	for text, put := range map[string]func() error{
		"permission denied":       func() error { return os.WriteFile(file, []byte("SECRET"), 0o600) },
		"neither a directory nor": func() error { return unix.Mknod(file, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))) },
	} {
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		err := b.thread.Do(func() error {
			plan, err := NewPlan(userConfig(b, Bind{Source: file, Target: "/data"}))
			if err != nil {
				return err
			}
			if err := os.Remove(file); err != nil {
				return err
			}
			if err := put(); err != nil {
				return err
			}
			tree, err := plan.Mount()
			if err == nil {
				err = tree.Discard()
			}
			return err
		})
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}

// A file system that cannot be id-mapped would be shown as it is, such as the host's /proc in
// a chroot: for a user it is refused, for root it is not.
func TestBindOfAUserIsMapped(t *testing.T) {
	b := newBench(t)
	source := b.mkdir("data", map[string]string{"proc/x": ""})
	own(t, source, bindUser, 0o755)
	b.do(func() error { return unix.Mount("proc", filepath.Join(source, "proc"), "proc", 0, "") })
	cfg := userConfig(b, Bind{Source: source, Target: "/data", ReadOnly: true})
	if tree, err := b.tryMount(cfg); err == nil || !strings.Contains(err.Error(), "cannot be id-mapped") {
		t.Errorf("mounted %v: %v", tree, err)
	}
	cfg.User = nil
	b.must(b.mount(cfg), sandboxAgent, "test -e /data/proc/1/comm")
}

// The target of a second bind inside the first is not created on the host with root's rights.
func TestBindOfAUserMakesNoTarget(t *testing.T) {
	b := newBench(t)
	roots, mine := b.mkdir("roots", nil), b.mkdir("mine", map[string]string{"sub/x": ""})
	own(t, mine, bindUser, 0o755)
	for target, want := range map[string]string{"/data/new": "cannot use /data/new", "/data/new/file": "cannot use /data/new"} {
		tree, err := b.tryMount(userConfig(b, Bind{Source: roots, Target: "/data"}, Bind{Source: mine, Target: target}))
		if err == nil {
			b.do(tree.Discard)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", target, err)
		}
	}
	if left := names(t, roots); len(left) > 0 {
		t.Errorf("root's directory has %q", left)
	}
	// Control: the directory exists already.
	b.must(b.mount(userConfig(b, Bind{Source: mine, Target: "/data"}, Bind{Source: roots, Target: "/data/sub"})), sandboxAgent, "test ! -e /data/sub/x")
}
