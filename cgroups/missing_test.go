package cgroups

import (
	"maps"
	"strings"
	"testing"
)

// hostOf detects a machine, which must succeed.
func hostOf(t *testing.T, m machine) *Host {
	t.Helper()
	h, err := detect(m.write(t))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

const cgroupV2 = "/sys/fs/cgroup/"

// v2Machine is a v2 host; files are added to its /sys/fs/cgroup.
func v2Machine(files machine) machine {
	m := machine{"/proc/self/mountinfo": mounts(v2Mount), "/proc/self/cgroup": "0::/user.slice\n",
		cgroupV2 + "cgroup.procs": "1\n"}
	for name, text := range files {
		m[cgroupV2+name] = text
	}
	return m
}

// v1Machine is a v1 host with memory and pids; its own memory cgroup is /a.
func v1Machine(files machine) machine {
	m := machine{
		"/proc/self/mountinfo": mounts(tmpfsMount, memoryMount, pidsMount,
			"/ /sys/fs/cgroup/blkio ro - cgroup cgroup rw,blkio",
			"/../.. /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer",
			"/ /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices"),
		"/proc/self/cgroup": "4:memory:/a\n8:pids:/\n7:blkio:/\n6:freezer:/\n5:devices:/unseen\n",
		"/proc/cgroups":     "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpuset\t0\t1\t0\ncpu\t0\t1\t1\n",

		"/sys/fs/cgroup/memory/a/cgroup.procs": "",
		"/sys/fs/cgroup/pids/cgroup.procs":     "",
		"/sys/fs/cgroup/blkio/cgroup.procs":    "",
	}
	for name, text := range files {
		m["/sys/fs/cgroup/"+name] = text
	}
	return m
}

func TestMissing(t *testing.T) {
	busy := machine{"cgroup.controllers": "cpu memory", "cgroup.subtree_control": "cpu", "cgroup.events": "populated 1\n"}
	foreign := maps.Clone(busy)
	foreign["cgroup.procs"] = "1\n0\n"
	idle := machine{"cgroup.controllers": "memory", "cgroup.subtree_control": "", "cgroup.events": "populated 1\n", "cgroup.procs": ""}
	bare := machine{"cgroup.controllers": "cpu memory", "cgroup.subtree_control": ""}
	cases := []struct {
		name, controller string
		host             machine
		want             string // "": usable
		remedy           string
	}{
		{"v1 mounted and writable", "memory", v1Machine(nil), "", ""},
		{"v1 not mounted", "cpu", v1Machine(nil), "the cpu controller is not mounted", "mount -t cgroup -o cpu"},
		{"v1 disabled", "cpuset", v1Machine(nil), "disabled on the kernel command line", "cgroup_enable=cpuset"},
		{"v1 io is blkio, read-only", "io", v1Machine(nil), "mounted read-only", "remount,rw"},
		{"v1 in another namespace", "freezer", v1Machine(nil), "another cgroup namespace", "--cgroupns=host"},
		{"v1 own cgroup not there", "devices", v1Machine(nil), "not visible", "--cgroupns=host"},
		{"v1 base is no directory", "memory", func() machine {
			m := v1Machine(machine{"memory/a": ""})
			delete(m, "/sys/fs/cgroup/memory/a/cgroup.procs")
			m["/proc/self/cgroup"] = "4:memory:/a/b\n"
			return m
		}(), "not writable", "as root"},
		{"v2 the real root may hold processes", "memory", v2Machine(bare), "", ""},
		{"v2 not offered", "pids", v2Machine(bare), `cgroup.controllers has "cpu memory"`, "cgroup_enable=pids"},
		{"v2 nothing readable", "pids", v2Machine(nil), "does not offer", "cgroup_enable=pids"},
		{"v2 in a container whose processes can be moved", "memory", v2Machine(busy), "", ""},
		{"v2 in a container with processes of others", "memory", v2Machine(foreign), "not visible here", "/init"},
		{"v2 there, but enabled already", "cpu", v2Machine(busy), "", ""},
		{"v2 in a container without processes at its root", "memory", v2Machine(idle), "", ""},
		{"v2 device rules are programs", "devices", v2Machine(nil), "", ""},
		{"v2 freezes always", "freezer", v2Machine(nil), "", ""},
		{"v2 counts CPU time always", "cpuacct", v2Machine(nil), "", ""},
		{"v2 read-only", "freezer", func() machine {
			m := v2Machine(nil)
			m["/proc/self/mountinfo"] = mounts("/ /sys/fs/cgroup ro - cgroup2 cgroup rw")
			return m
		}(), "mounted read-only", "--privileged"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := hostOf(t, c.host)
			got := h.Missing(c.controller)
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) || !strings.Contains(got, c.remedy) {
				t.Errorf("got %q, want %q and remedy %q", got, c.want, c.remedy)
			}
			if h.Has(c.controller) != (c.want == "") {
				t.Error("Has disagrees with Missing")
			}
		})
	}
}

func TestSwapAccounting(t *testing.T) {
	offered := machine{"cgroup.controllers": "memory", "cgroup.subtree_control": "memory"}
	with := func(files ...string) machine {
		m := machine{}
		for name, text := range offered {
			m[name] = text
		}
		for _, name := range files {
			m[name] = "max\n"
		}
		return m
	}
	cases := []struct {
		name string
		host machine
		want bool
	}{
		{"v1 with", v1Machine(machine{"memory/a/memory.memsw.limit_in_bytes": "0\n"}), true},
		{"v1 without", v1Machine(nil), false},
		{"v2 with", v2Machine(with("clove.slice/memory.max", "clove.slice/memory.swap.max")), true},
		{"v2 without", v2Machine(with("clove.slice/memory.max")), false},
		{"v2 before anything was enabled", v2Machine(with()), true},
		{"v2 without memory", v2Machine(nil), false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := hostOf(t, c.host).SwapAccounting(); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
