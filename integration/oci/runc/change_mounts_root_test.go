//go:build root

package runc

import (
	"math/rand/v2"
	"os"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// bind mounts the bundle's volume somewhere.
func bind(b *bundle, destination string, options ...string) {
	b.mount(destination, "bind", b.site.path("volume"), append([]string{"rbind"}, options...)...)
}

var mountChanges = []change{
	{"volume", func(b *bundle, _ *rand.Rand) { bind(b, "/vol") }},
	{"volume read-only", func(b *bundle, d *rand.Rand) { bind(b, "/vol", pick(d, "ro", "rro")) }},
	{"volume with flags", func(b *bundle, d *rand.Rand) {
		bind(b, "/vol", pick(d, "nosuid", "nodev", "noexec", "noatime", "relatime", "strictatime", "nodiratime", "nosymfollow", "sync"), pick(d, "ro", "rw"))
	}},
	{"volume with recursive flags", func(b *bundle, d *rand.Rand) {
		bind(b, "/vol", pick(d, "rnosuid", "rnodev", "rnoexec", "rnoatime", "rstrictatime", "rrelatime", "rnosymfollow"))
	}},
	{"volume with propagation", func(b *bundle, d *rand.Rand) {
		bind(b, "/vol", pick(d, "private", "rprivate", "slave", "rslave", "shared", "rshared", "unbindable"))
	}},
	{"volume not recursive", func(b *bundle, _ *rand.Rand) { b.mount("/vol", "", b.site.path("volume"), "bind") }},
	{"volume by a relative path", func(b *bundle, d *rand.Rand) { b.mount("/vol", "bind", pick(d, "volume", "./volume"), "bind") }},
	{"volume is not there", func(b *bundle, _ *rand.Rand) { b.mount("/vol", "bind", b.site.path("none"), "bind") }},
	{"volume without source", func(b *bundle, _ *rand.Rand) { b.mount("/vol", "bind", "", "bind") }},
	{"volume with data", func(b *bundle, _ *rand.Rand) { bind(b, "/vol", "size=4k") }},
	{"volume is a file", func(b *bundle, d *rand.Rand) {
		b.mount("/vol", "bind", b.site.path("volume/file"), "bind", pick(d, "ro", "rw"))
	}},
	{"volume deep", func(b *bundle, _ *rand.Rand) { bind(b, "/a/b/c/vol") }},
	{"volume on a file", func(b *bundle, _ *rand.Rand) { bind(b, "/exec") }},
	{"volume relative destination", func(b *bundle, _ *rand.Rand) { bind(b, "vol") }},
	{"volume with dots", func(b *bundle, d *rand.Rand) { bind(b, pick(d, "/../../vol", "/tmp/../vol", "/vol/..", "/tmp//x/./")) }},
	{"volume on the root", func(b *bundle, d *rand.Rand) { bind(b, pick(d, "/", "/.", "")) }},
	{"volume by a link inside", func(b *bundle, d *rand.Rand) {
		b.site.link(pick(d, "/tmp", "../../../../tmp", "/none/at/all", "vol2"), "rootfs/vol2x")
		bind(b, "/vol2x")
	}},
	{"volume by a link that loops", func(b *bundle, _ *rand.Rand) { b.site.link("loop", "rootfs/loop"); bind(b, "/loop/vol") }},
	{"volume with ids mapped", func(b *bundle, d *rand.Rand) {
		bind(b, "/vol", pick(d, "idmap", "ridmap"))
		b.Mounts[len(b.Mounts)-1].UIDMappings = []specs.LinuxIDMapping{{ContainerID: 0, HostID: 1000, Size: 10}}
		b.Mounts[len(b.Mounts)-1].GIDMappings = []specs.LinuxIDMapping{{ContainerID: 0, HostID: 2000, Size: 10}}
	}},
	{"volume with ids mapped by no map", func(b *bundle, _ *rand.Rand) { bind(b, "/vol", "idmap") }},
	{"tmpfs", func(b *bundle, d *rand.Rand) {
		b.mount("/vol", "tmpfs", "tmpfs", pick(d, "size=64k", "mode=700", "nr_inodes=9"), "nosuid")
	}},
	{"tmpfs read-only", func(b *bundle, _ *rand.Rand) { b.mount("/vol", "tmpfs", "tmpfs", "ro") }},
	{"tmpfs with a copy", func(b *bundle, _ *rand.Rand) {
		b.site.mkdir("rootfs/vol")
		b.site.write("rootfs/vol/file", "below")
		b.mount("/vol", "tmpfs", "tmpfs", "tmpcopyup")
	}},
	{"tmpfs of a wrong size", func(b *bundle, _ *rand.Rand) { b.mount("/vol", "tmpfs", "tmpfs", "size=much") }},
	{"mounts on each other", func(b *bundle, _ *rand.Rand) { b.mount("/vol", "tmpfs", "tmpfs"); bind(b, "/vol/in") }},
	{"unknown file system", func(b *bundle, d *rand.Rand) { b.mount("/vol", pick(d, "nonefs", "Tmpfs"), "none") }},
	{"unknown option", func(b *bundle, d *rand.Rand) { b.mount("/vol", "tmpfs", "tmpfs", pick(d, "fast", "RO", "size")) }},
	{"no type", func(b *bundle, _ *rand.Rand) { b.mount("/vol", "", "") }},
	{"no dev", func(b *bundle, _ *rand.Rand) {
		for _, destination := range []string{"/dev", "/dev/pts", "/dev/shm", "/dev/mqueue"} {
			b.unmount(destination)
		}
	}},
	{"no proc", func(b *bundle, _ *rand.Rand) { b.unmount("/proc") }},
	{"no sys", func(b *bundle, _ *rand.Rand) { b.unmount("/sys") }},
	{"no mounts", func(b *bundle, _ *rand.Rand) { b.Mounts = nil }},
	{"sys writable", func(b *bundle, _ *rand.Rand) { b.unmount("/sys"); b.mount("/sys", "sysfs", "sysfs", "nosuid") }},
	{"cgroups", func(b *bundle, d *rand.Rand) {
		b.mount("/sys/fs/cgroup", "cgroup", "cgroup", "nosuid", pick(d, "ro", "rw"))
	}},
	{"cgroups of version 2", func(b *bundle, _ *rand.Rand) { b.mount("/sys/fs/cgroup", "cgroup2", "cgroup2", "ro") }},
	{"mount over proc", func(b *bundle, d *rand.Rand) {
		bind(b, pick(d, "/proc", "/proc/sys", "/proc/1", "/proc/self/attr", "/proc/../proc/fs", "/sys/../proc"))
	}},
	{"mount over a file of proc", func(b *bundle, d *rand.Rand) {
		b.mount(pick(d, "/proc/uptime", "/proc/meminfo", "/proc/version", "/proc/sys/kernel/ns_last_pid"), "bind", b.site.path("volume/file"), "bind")
	}},
	{"proc of the host", func(b *bundle, _ *rand.Rand) { b.unmount("/proc"); b.mount("/proc", "bind", "/proc", "rbind") }},
	{"proc by a link", func(b *bundle, _ *rand.Rand) {
		b.site.mkdir("rootfs/other")
		b.site.link("/other", "rootfs/link2")
		b.mount("/link2", "proc", "proc")
	}},
	{"proc twice", func(b *bundle, _ *rand.Rand) { b.mount("/proc", "proc", "proc") }},
	{"proc with options", func(b *bundle, d *rand.Rand) {
		b.unmount("/proc")
		b.mount("/proc", "proc", "proc", pick(d, "hidepid=2", "subset=pid", "ro"))
	}},
	{"dev of the host's devices", func(b *bundle, _ *rand.Rand) { b.mount("/dev/host", "bind", "/dev/null", "bind") }},
	{"device", func(b *bundle, d *rand.Rand) {
		b.linux().Devices = []specs.LinuxDevice{{Path: pick(d, "/dev/fuse", "/dev/own"), Type: "c", Major: 10, Minor: 229, FileMode: pointer(pick[os.FileMode](d, 0o600, 0o666)), UID: pointer[uint32](1), GID: pointer[uint32](2)}}
	}},
	{"device of no kind", func(b *bundle, d *rand.Rand) {
		b.linux().Devices = []specs.LinuxDevice{{Path: "/dev/x", Type: pick(d, "", "x", "cc", "a"), Major: 1, Minor: 3}}
	}},
	{"device elsewhere", func(b *bundle, d *rand.Rand) {
		b.linux().Devices = []specs.LinuxDevice{{Path: pick(d, "/deep/in/x", "relative", "/tmp/../y"), Type: "c", Major: 1, Minor: 3}}
	}},
	{"device that is default", func(b *bundle, d *rand.Rand) {
		b.linux().Devices = []specs.LinuxDevice{{Path: "/dev/null", Type: "c", Major: 1, Minor: pick[int64](d, 3, 5)}}
	}},
	{"fifo", func(b *bundle, _ *rand.Rand) { b.linux().Devices = []specs.LinuxDevice{{Path: "/dev/pipe", Type: "p"}} }},
}
