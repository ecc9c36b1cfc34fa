package cgroups

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// machine is a host made of plain files; keys are absolute paths on it.
type machine map[string]string

// write writes the machine below a new root and returns that.
func (m machine) write(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	for path, text := range m {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// mounts numbers the lines as mountinfo does; each is "root point options - type source
// super".
func mounts(lines ...string) string {
	var b strings.Builder
	for i, line := range lines {
		fmt.Fprintf(&b, "%d 1 0:%d %s\n", 30+i, 30+i, line)
	}
	return b.String()
}

const (
	tmpfsMount  = "/ /sys/fs/cgroup ro,nosuid - tmpfs tmpfs rw,mode=755"
	v2Mount     = "/ /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate"
	memoryMount = "/ /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory"
	pidsMount   = "/ /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids"
)

// picture is the text form of a host in the golden table.
func (h *Host) picture(root string) string {
	lines := []string{string(h.mode)}
	for _, name := range slices.Sorted(maps.Keys(h.trees)) {
		t := h.trees[name]
		line := fmt.Sprintf("%s=%s", name, strings.TrimPrefix(t.base, root))
		if t.foreign {
			line += "foreign"
		}
		if t.readOnly {
			line += " ro"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}

func TestDetect(t *testing.T) {
	cases := []struct {
		name, mounts, own, want string
	}{
		{"systemd on v2", mounts("/ / rw - ext4 /dev/vda1 rw", v2Mount), "0::/user.slice/user-1000.slice/session-3.scope\n",
			"v2; =/sys/fs/cgroup"},
		{"v2 read-only in a container", mounts("/ /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw"), "0::/\n",
			"v2; =/sys/fs/cgroup ro"},
		{"v2 mounted over the tmpfs of an older set-up", mounts(tmpfsMount, v2Mount), "0::/\n",
			"v2; =/sys/fs/cgroup"},
		{"hybrid with an own memory cgroup",
			mounts(tmpfsMount, memoryMount, pidsMount,
				"/ /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd",
				"/ /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw"),
			"9:name=systemd:/a.scope\n8:pids:/\n4:memory:/batch/ec5a\n0::/a.scope\n",
			"hybrid; =/sys/fs/cgroup/unified; memory=/sys/fs/cgroup/memory/batch/ec5a; name=systemd=/sys/fs/cgroup/systemd/a.scope; pids=/sys/fs/cgroup/pids"},
		{"v1 with co-mounted controllers",
			mounts(tmpfsMount, "/ /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct", memoryMount),
			"3:cpu,cpuacct:/user.slice\n4:memory:/user.slice\n",
			"v1; cpu=/sys/fs/cgroup/cpu,cpuacct/user.slice; cpuacct=/sys/fs/cgroup/cpu,cpuacct/user.slice; memory=/sys/fs/cgroup/memory/user.slice"},
		{"v1 read-only by mount or by super block",
			mounts("/ /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory", "/ /sys/fs/cgroup/pids rw - cgroup cgroup ro,pids"),
			"4:memory:/\n8:pids:/\n", "v1; memory=/sys/fs/cgroup/memory ro; pids=/sys/fs/cgroup/pids ro"},
		{"docker on v1 without a cgroup namespace",
			mounts("/docker/4f2 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory"), "4:memory:/docker/4f2\n",
			"v1; memory=/sys/fs/cgroup/memory ro"},
		{"cgroup namespace over a mount from outside",
			mounts("/../.. /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"), "4:memory:/\n", "v1; memory=foreign"},
		{"process moved out of its cgroup namespace", mounts(memoryMount), "4:memory:/../other\n", "v1; memory=foreign"},
		{"own cgroup above what the mount shows",
			mounts("/docker/4f2 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"), "4:memory:/docker\n", "v1; memory=foreign"},
		{"a copy of the tree for a container comes second",
			mounts(memoryMount, "/pod1 /var/lib/kubelet/cg rw - cgroup cgroup rw,memory"), "4:memory:/a\n",
			"v1; memory=/sys/fs/cgroup/memory/a"},
		{"named hierarchies of others stay out", mounts(memoryMount, "/ /sys/fs/cgroup/lxc rw - cgroup cgroup rw,name=lxc"),
			"4:memory:/\n5:name=lxc:/\n", "v1; memory=/sys/fs/cgroup/memory"},
		{"a mount whose controller this process is not told of", mounts(memoryMount, pidsMount), "4:memory:/\n",
			"v1; memory=/sys/fs/cgroup/memory"},
		{"colons in a path", mounts(memoryMount), "4:memory:/a:b\n", "v1; memory=/sys/fs/cgroup/memory/a:b"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			root := machine{"/proc/self/mountinfo": c.mounts, "/proc/self/cgroup": c.own}.write(t)
			h, err := detect(root)
			if err != nil {
				t.Fatal(err)
			}
			if got := h.picture(root); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if got := h.Mode(); !strings.HasPrefix(c.want, string(got)+";") {
				t.Errorf("Mode() = %q", got)
			}
		})
	}
}

func TestDetectRefuses(t *testing.T) {
	cases := []struct {
		name string
		host machine
		want string
	}{
		{"no cgroups at all", machine{"/proc/self/mountinfo": mounts("/ / rw - ext4 /dev/vda1 rw")}, ErrNoCgroups.Error()},
		{"v2 where libcontainer does not look",
			machine{"/proc/self/mountinfo": mounts("/ /mnt/cg rw - cgroup2 none rw"), "/proc/self/cgroup": "0::/\n"}, ErrNoCgroups.Error()},
		{"no mountinfo", machine{"/proc/self/cgroup": "0::/\n"}, "cannot read the mounts"},
		{"broken mountinfo", machine{"/proc/self/mountinfo": "not a mount\n"}, "cannot parse"},
		{"broken cgroup file", machine{"/proc/self/mountinfo": mounts(v2Mount), "/proc/self/cgroup": "0:\n"}, "has not three fields"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := detect(c.host.write(t))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if wantNone := c.want == ErrNoCgroups.Error(); errors.Is(err, ErrNoCgroups) != wantNone {
				t.Errorf("errors.Is(ErrNoCgroups) is not %t for %v", wantNone, err)
			}
		})
	}
}
