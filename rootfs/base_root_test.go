//go:build root

package rootfs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	sandboxRoot  = 0
	sandboxAgent = 1000
)

// fakeHost mounts directories of the test over the host's, in the bench's mount namespace
// only.
func (b *bench) fakeHost(dirs map[string]string) {
	b.t.Helper()
	b.do(func() error {
		for at, from := range dirs {
			if err := unix.Mount(from, at, "", unix.MS_BIND, ""); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestSecretsOfTheHostAreNotThere(t *testing.T) {
	b := newBench(t)
	etc := b.mkdir("etc", map[string]string{
		"passwd": "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n", "group": "root:x:0:\n",
		"shadow": "root:SECRET:::::::\n", "shadow-": "SECRET", "gshadow": "SECRET", "environment": "SECRET",
		"ssh/ssh_host_rsa_key": "SECRET", "apt/auth.conf": "SECRET", "apt/sources.list": "deb http://a:SECRET@b c d\n",
		"machine-id": "SECRET", "krb5.keytab": "SECRET", "ssl/private/key": "SECRET", "hosts": "SECRET", "resolv.conf": "SECRET",
		"sudoers.d/ann": "SECRET", "shells": "/bin/sh\n", "profile.d/own.sh": "SECRET",
	})
	if err := os.Chmod(filepath.Join(etc, "profile.d/own.sh"), 0o640); err != nil {
		t.Fatal(err)
	}
	b.fakeHost(map[string]string{"/etc": etc})
	tree := b.mount(testConfig(b.dir))

	const search = "grep -rl SECRET /etc /root /home /var /run /tmp /workspace 2>/dev/null"
	// Control: the same search finds them outside.
	var outside string
	b.do(func() error {
		out, err := hostCommand("grep", "-rl", "SECRET", "/etc")
		outside = out
		return err
	})
	if found := strings.Count(outside, "\n"); found < 12 {
		t.Fatalf("control: only %d secrets are on the host:\n%s", found, outside)
	}
	if r := b.inside(tree, sandboxRoot, search); r.out != "" {
		t.Errorf("root of the sandbox finds secrets in\n%s", r.out)
	}
	if out := b.must(tree, sandboxRoot, "cat /etc/passwd /etc/shells"); strings.Contains(out, "ann") || !strings.Contains(out, "agent") || !strings.Contains(out, "/bin/sh") {
		t.Errorf("passwd and shells read\n%s", out)
	}
	// A name that appears on the host later, for example during a change of a password.
	if err := os.WriteFile(filepath.Join(etc, "shadow+"), []byte("SECRET"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.refused(tree, sandboxRoot, "cat /etc/shadow+", "No such file")
}

func TestRootHoldsThePositiveListOnly(t *testing.T) {
	b := newBench(t)
	tree := b.mount(testConfig(b.dir))
	late, err := os.CreateTemp("/", ".clove-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(late.Name())
	defer late.Close()
	want := []string{"bin", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "opt", "proc", "root", "run", "sbin", "sys", "tmp", "usr", "var", "workspace"}
	got := strings.Fields(b.must(tree, sandboxRoot, "ls -A /"))
	for _, name := range got {
		if !slices.Contains(want, name) {
			t.Errorf("/%s shows inside", name)
		}
	}
	for script, want := range map[string]string{
		"ls -A /home /root /dev /proc /tmp":                        "/dev:\n\n/home:\nagent\n\n/proc:\n\n/root:\n\n/tmp:\n",
		"stat -c '%a %u %n' /home/agent /workspace /tmp /root":     "755 1000 /home/agent\n755 1000 /workspace\n1777 0 /tmp\n700 0 /root\n",
		"stat -c '%u %n' /usr /usr/bin/env /etc/passwd":            "0 /usr\n0 /usr/bin/env\n0 /etc/passwd\n",
		"cat /etc/hostname; ls /sys /sys/fs; ls -A /sys/fs/cgroup": "box\n/sys:\ndevices\nfs\nkernel\n\n/sys/fs:\ncgroup\n",
	} {
		if out := b.must(tree, sandboxRoot, script); out != want {
			t.Errorf("%s\ngot\n%swant\n%s", script, out, want)
		}
	}
	b.must(tree, sandboxAgent, "nproc && cat /sys/devices/system/cpu/online")
	b.refused(tree, sandboxRoot, "echo 1 >/sys/x", "Read-only")
}

func TestWritesStayInTheLayer(t *testing.T) {
	b := newBench(t)
	opt := b.mkdir("opt", map[string]string{"tool": "of the host\n", "dir/file": "kept\n"})
	b.fakeHost(map[string]string{"/opt": opt})
	workspace := b.mkdir("workspace", map[string]string{"agent.py": "print(1)\n", "sub/data": "1\n"})
	if err := os.Chown(workspace, 1234, 1234); err != nil {
		t.Fatal(err)
	}
	cfg := testConfig(b.dir)
	cfg.Workspace = workspace
	tree := b.mount(cfg)
	if changed, err := tree.Changed(); changed || err != nil {
		t.Fatalf("changed before anything ran: %v %v", changed, err)
	}
	b.must(tree, sandboxRoot, "echo mine >/opt/tool && rm -r /opt/dir && touch /etc/new && rm /usr/bin/env && chown 5:5 /opt/tool")
	b.must(tree, sandboxAgent, "cd /workspace && echo 2 >new && mkdir d && touch /tmp/t /home/agent/h")
	b.refused(tree, sandboxAgent, "touch /usr/bin/mine", "Permission denied")
	if got := b.must(tree, sandboxAgent, "stat -c %u:%g /workspace /workspace/new"); got != "1000:1000\n1000:1000\n" {
		t.Errorf("the workspace belongs to %s", got)
	}

	if data, err := os.ReadFile(filepath.Join(opt, "tool")); err != nil || string(data) != "of the host\n" {
		t.Errorf("the host's file reads %q (%v)", data, err)
	}
	if got := names(t, workspace); !slices.Equal(got, []string{"agent.py", "sub"}) {
		t.Errorf("the host's workspace holds %q", got)
	}
	if _, err := os.Stat("/usr/bin/env"); err != nil {
		t.Error(err)
	}
	if changed, err := tree.Changed(); !changed || err != nil {
		t.Errorf("changed: %v %v", changed, err)
	}
	want := []string{"A /etc/new", "A /home/agent/h", "D /opt/dir", "C /opt/tool", "A /tmp/t", "D /usr/bin/env", "A /workspace/d", "A /workspace/new"}
	if got := b.diff(tree.Uppers()); !slices.Equal(got, want) {
		t.Errorf("diff\n%q want\n%q", got, want)
	}
}

func TestSubmountOfTheBaseIsSeen(t *testing.T) {
	b := newBench(t)
	opt, local := b.mkdir("opt", map[string]string{"local/hidden": "x"}), b.mkdir("local", map[string]string{"tool": "y"})
	b.fakeHost(map[string]string{"/opt": opt})
	b.fakeHost(map[string]string{"/opt/local": local})
	tree := b.mount(testConfig(b.dir))
	if out := b.must(tree, sandboxRoot, "ls /opt/local && echo z >/opt/local/tool"); out != "tool\n" {
		t.Errorf("/opt/local holds %q", out)
	}
	if data, _ := os.ReadFile(filepath.Join(local, "tool")); string(data) != "y" {
		t.Errorf("the host's file reads %q", data)
	}
}

func TestPackagesInstall(t *testing.T) {
	b := newBench(t)
	cfg := testConfig(b.dir)
	cfg.Workspace = b.mkdir("deb", nil)
	if out, err := hostCommand("sh", "-c", `cd "$1" && mkdir -p p/DEBIAN p/usr/share/clove-test p/etc &&
printf 'Package: clove-test\nVersion: 1\nArchitecture: all\nMaintainer: nobody <nobody@localhost>\nDescription: test\n' >p/DEBIAN/control &&
echo hi >p/usr/share/clove-test/file && echo c >p/etc/clove-test.conf && dpkg-deb --root-owner-group -b p t.deb`, "sh", cfg.Workspace); err != nil {
		t.Fatalf("cannot build a package: %v: %s", err, out)
	}
	tree := b.mount(cfg)
	b.must(tree, sandboxRoot, "DEBIAN_FRONTEND=noninteractive dpkg -i /workspace/t.deb && test -e /usr/share/clove-test/file && test -e /etc/clove-test.conf && dpkg -s clove-test")
	if _, err := os.Stat("/usr/share/clove-test"); err == nil {
		t.Error("the package is on the host")
	}
}
