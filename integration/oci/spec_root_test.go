//go:build root

package oci

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"clove.run/clove/internal/ocitest"
)

// matter is one property of a bundle: what script prints without it, which is the control, and
// with it.
type matter struct {
	script         string
	ask            func(*specs.Spec)
	without, asked string
}

func try(t *testing.T, r *ocitest.Runtime, matters map[string]matter, both ...func(*specs.Spec)) {
	t.Helper()
	for name, m := range matters {
		if got := inside(t, r, m.script, both...); got != m.without {
			t.Errorf("%s, not asked for: %q, not %q", name, got, m.without)
		}
		if got := inside(t, r, m.script, append(both, m.ask)...); got != m.asked {
			t.Errorf("%s: %q, not %q", name, got, m.asked)
		}
	}
}

func TestTheProcessIsWhatTheBundleSays(t *testing.T) {
	score, umask := 500, uint32(0o27)
	try(t, newRuntime(t), map[string]matter{
		"directory": {"pwd", func(s *specs.Spec) { s.Process.Cwd = "/tmp" }, "/", "/tmp"},
		"variable":  {"echo $A", func(s *specs.Spec) { s.Process.Env = append(s.Process.Env, "A=b c") }, "", "b c"},
		"user": {"id", func(s *specs.Spec) { s.Process.User = specs.User{UID: 3, GID: 4, AdditionalGids: []uint32{5}} },
			"uid=0(root) gid=0", "uid=3 gid=4 groups=5"},
		"umask":     {"umask", func(s *specs.Spec) { s.Process.User.Umask = &umask }, "0022", "0027"},
		"oom score": {"cat /proc/self/oom_score_adj", func(s *specs.Spec) { s.Process.OOMScoreAdj = &score }, ownScore(t), "500"},
		"rlimit": {"ulimit -n; ulimit -H -n", func(s *specs.Spec) {
			s.Process.Rlimits = []specs.POSIXRlimit{{Type: "RLIMIT_NOFILE", Soft: 64, Hard: 128}}
		}, "1024\n1024", "64\n128"},
		"no new privileges": {"grep NoNew /proc/self/status", func(s *specs.Spec) { s.Process.NoNewPrivileges = false }, "NoNewPrivs:\t1", "NoNewPrivs:\t0"},
		"capabilities": {"grep -e CapEff -e CapAmb /proc/self/status", func(s *specs.Spec) {
			one := []string{"CAP_CHOWN"}
			s.Process.Capabilities = &specs.LinuxCapabilities{Bounding: one, Effective: one, Permitted: one, Inheritable: one, Ambient: one}
		}, "CapEff:\t0000000020000420\nCapAmb:\t0000000000000000", "CapEff:\t0000000000000001\nCapAmb:\t0000000000000001"},
		"host name":   {"hostname", func(s *specs.Spec) { s.Hostname = "other" }, "runc", "other"},
		"domain name": {"cat /proc/sys/kernel/domainname", func(s *specs.Spec) { s.Domainname = "example.org" }, "(none)", "example.org"},
		"sysctl": {"cat /proc/sys/net/ipv4/ip_unprivileged_port_start /proc/sys/kernel/msgmax", func(s *specs.Spec) {
			s.Linux.Sysctl = map[string]string{"net.ipv4.ip_unprivileged_port_start": "99", "kernel.msgmax": "4000"}
		}, "1024\n8192", "99\n4000"},
		"scheduler": {"grep ^policy /proc/self/sched | tr -d ' '", func(s *specs.Spec) {
			s.Process.Scheduler = &specs.Scheduler{Policy: specs.SchedBatch}
		}, "policy:0", "policy:3"},
	})
}

// ownScore is the OOM score that a container without one of its own inherits from the test.
func ownScore(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func TestTheRootIsWhatTheBundleSays(t *testing.T) {
	const write = "touch /dev/shm/x /x 2>/dev/null && echo written || echo refused"
	try(t, newRuntime(t), map[string]matter{
		"writable":      {write, func(s *specs.Spec) { s.Root.Readonly = false }, "refused", "written"},
		"masked file":   {"wc -c </etc/passwd", func(s *specs.Spec) { s.Linux.MaskedPaths = []string{"/etc/passwd"} }, "30", "0"},
		"masked folder": {"ls /etc", func(s *specs.Spec) { s.Linux.MaskedPaths = []string{"/etc"} }, "passwd", ""},
	})
	try(t, newRuntime(t), map[string]matter{
		"read-only path": {write, func(s *specs.Spec) { s.Linux.ReadonlyPaths = []string{"/dev/shm"} }, "written", "refused"},
	}, func(s *specs.Spec) { s.Root.Readonly = false })
}

// TestDevicesAreMadeAndAllowed: a device node alone does not allow it to be opened.
func TestDevicesAreMadeAndAllowed(t *testing.T) {
	mode, major, minor := os.FileMode(0o640), int64(10), int64(237) // loop-control
	made := func(s *specs.Spec) {
		s.Linux.Devices = []specs.LinuxDevice{{Path: "/dev/some/loop", Type: "c", Major: major, Minor: minor, FileMode: &mode}}
	}
	try(t, newRuntime(t), map[string]matter{
		"made": {"stat -c '%t:%T %a' /dev/some/loop 2>/dev/null || echo none", made, "none", "a:ed 640"},
	})
	try(t, newRuntime(t), map[string]matter{
		"allowed": {"(exec 3</dev/some/loop) 2>/dev/null && echo opened || echo refused", func(s *specs.Spec) {
			s.Linux.Resources.Devices = append(s.Linux.Resources.Devices, specs.LinuxDeviceCgroup{Allow: true, Type: "c", Major: &major, Minor: &minor, Access: "rw"})
		}, "refused", "opened"},
	}, made)
}

func TestMountsOfEveryKind(t *testing.T) {
	r := newRuntime(t)
	outside := directory(t, r)
	below := filepath.Join(outside, "below")
	if err := os.Mkdir(below, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", below, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(below, 0) })
	for _, path := range []string{filepath.Join(outside, "file"), filepath.Join(below, "inner")} {
		if err := os.WriteFile(path, []byte(filepath.Base(path)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	mounted := func(kind string, options ...string) func(*specs.Spec) {
		return func(s *specs.Spec) {
			s.Mounts = append(s.Mounts, specs.Mount{Destination: "/tmp", Type: kind, Source: kind, Options: options})
		}
	}
	mappable, file := below, "/tmp/inner" // by Linux 6.3 and later; ext4 could be mapped before tmpfs
	var system unix.Statfs_t
	if err := unix.Statfs(outside, &system); err == nil && system.Type == unix.EXT4_SUPER_MAGIC {
		mappable, file = outside, "/tmp/file"
	}
	mapped := func(s *specs.Spec) {
		ids := []specs.LinuxIDMapping{{ContainerID: 0, HostID: 100000, Size: 65536}}
		bind(mappable, "/tmp", "idmap")(s)
		s.Mounts[len(s.Mounts)-1].UIDMappings, s.Mounts[len(s.Mounts)-1].GIDMappings = ids, ids
	}
	const contents = "cat /tmp/file /tmp/below/inner 2>/dev/null; true"
	const kind = "grep ' /tmp ' /proc/mounts | cut -d' ' -f3"
	try(t, r, map[string]matter{
		"bind":         {contents, bind(outside, "/tmp"), "", "file"},
		"rbind":        {contents, bind(outside, "/tmp", "rbind"), "", "fileinner"},
		"proc":         {kind, mounted("proc"), "", "proc"},
		"sysfs":        {kind, mounted("sysfs"), "", "sysfs"},
		"mqueue":       {kind, mounted("mqueue"), "", "mqueue"},
		"tmpfs":        {kind, mounted("tmpfs"), "", "tmpfs"},
		"tmpfs's size": {"grep -o size=128k /proc/mounts || true", mounted("tmpfs", "size=128k"), "", "size=128k"},
		"cgroup":       {"[ -e /tmp/cgroup.procs -o -e /tmp/memory/cgroup.procs ] && echo there || echo none", mounted("cgroup"), "none", "there"},
	})
	try(t, r, map[string]matter{
		"read-only": {"touch /tmp/inner 2>/dev/null && echo written || echo refused",
			func(s *specs.Spec) { s.Mounts[len(s.Mounts)-1].Options = []string{"bind", "ro"} }, "written", "refused"},
	}, bind(below, "/tmp"))
	try(t, r, map[string]matter{
		"idmap": {"stat -c %u:%g " + file, func(s *specs.Spec) { s.Mounts = s.Mounts[:len(s.Mounts)-1]; mapped(s) }, "0:0", "100000:100000"},
	}, bind(mappable, "/tmp"))
}

// TestNamespacesByPath joins each kind of namespace of a running container.
func TestNamespacesByPath(t *testing.T) {
	r := newRuntime(t)
	id := waiting(t, r)
	pid := strconv.Itoa(r.State(id).Pid)
	for kind, name := range map[specs.LinuxNamespaceType]string{
		specs.NetworkNamespace: "net", specs.IPCNamespace: "ipc", specs.UTSNamespace: "uts", specs.PIDNamespace: "pid", specs.CgroupNamespace: "cgroup",
	} {
		path := "/proc/" + pid + "/ns/" + name
		theirs, err := os.Readlink(path)
		if err != nil {
			t.Fatal(err)
		}
		script := "readlink /proc/self/ns/" + name
		own := func(s *specs.Spec) { setNamespace(s, kind, "") }
		if got := inside(t, r, script, own); got == theirs || got == "" {
			t.Errorf("%s, not asked for: %s", kind, got)
		}
		if got := inside(t, r, script, func(s *specs.Spec) { s.Hostname = ""; setNamespace(s, kind, path) }); got != theirs {
			t.Errorf("%s: %s, not %s", kind, got, theirs)
		}
	}
}

func setNamespace(s *specs.Spec, kind specs.LinuxNamespaceType, path string) {
	var others []specs.LinuxNamespace
	for _, n := range s.Linux.Namespaces {
		if n.Type != kind {
			others = append(others, n)
		}
	}
	s.Linux.Namespaces = append(others, specs.LinuxNamespace{Type: kind, Path: path})
}

// TestAUserNamespaceMapsIds: root inside has no rights outside.
func TestAUserNamespaceMapsIds(t *testing.T) {
	r := newRuntime(t)
	shared := directory(t, r)
	const script = "id -u; tr -s ' ' </proc/self/uid_map; echo x >/tmp/mine"
	if got := inside(t, r, script, bind(shared, "/tmp")); got != "0\n 0 0 4294967295" {
		t.Errorf("not asked for: %q", got)
	}
	if err := os.Remove(filepath.Join(shared, "mine")); err != nil {
		t.Fatal(err)
	}
	got := inside(t, r, script, bind(shared, "/tmp"), func(s *specs.Spec) {
		setNamespace(s, specs.UserNamespace, "")
		s.Linux.UIDMappings = []specs.LinuxIDMapping{{ContainerID: 0, HostID: 100000, Size: 65536}}
		s.Linux.GIDMappings = s.Linux.UIDMappings
	})
	var info unix.Stat_t
	if err := unix.Stat(filepath.Join(shared, "mine"), &info); err != nil || info.Uid != 100000 || got != "0\n 0 100000 65536" {
		t.Errorf("inside %q, outside the file is of %d, %v", got, info.Uid, err)
	}
}
