//go:build root

package runc

import (
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// mapped gives the container a user namespace.
func mapped(b *bundle, size uint32) {
	b.namespace(specs.UserNamespace, "")
	b.linux().UIDMappings = []specs.LinuxIDMapping{{ContainerID: 0, HostID: 100000, Size: size}}
	b.linux().GIDMappings = []specs.LinuxIDMapping{{ContainerID: 0, HostID: 200000, Size: size}}
}

// placeChanges concern namespaces, the root and names.
var placeChanges = []change{
	{"namespace of the host", func(b *bundle, d *rand.Rand) {
		b.without(pick(d, specs.PIDNamespace, specs.IPCNamespace, specs.CgroupNamespace, specs.NetworkNamespace))
	}},
	{"host's network", func(b *bundle, _ *rand.Rand) { b.without(specs.NetworkNamespace) }},
	{"host's processes", func(b *bundle, _ *rand.Rand) { b.without(specs.PIDNamespace) }},
	{"host's name with a name", func(b *bundle, _ *rand.Rand) { b.without(specs.UTSNamespace) }},
	{"host's name", func(b *bundle, _ *rand.Rand) { b.without(specs.UTSNamespace); b.Hostname = "" }},
	{"host's mounts with masks", func(b *bundle, _ *rand.Rand) {
		b.without(specs.MountNamespace)
		b.linux().MaskedPaths = []string{"/proc/keys"} // no runtime may continue after this failure
	}},
	{"namespace by path", func(b *bundle, d *rand.Rand) {
		kind := pick(d, "net", "ipc", "cgroup")
		b.namespace(map[string]specs.LinuxNamespaceType{"net": specs.NetworkNamespace, "ipc": specs.IPCNamespace, "cgroup": specs.CgroupNamespace}[kind], "/proc/self/ns/"+kind)
	}},
	{"namespace by a wrong path", func(b *bundle, d *rand.Rand) {
		b.namespace(specs.NetworkNamespace, pick(d, "/none", "relative", "/proc/self/ns/uts", "/etc/hostname"))
	}},
	{"namespace twice", func(b *bundle, _ *rand.Rand) {
		b.linux().Namespaces = append(b.linux().Namespaces, specs.LinuxNamespace{Type: specs.IPCNamespace})
	}},
	{"namespace unknown", func(b *bundle, d *rand.Rand) {
		b.linux().Namespaces = append(b.linux().Namespaces, specs.LinuxNamespace{Type: pick[specs.LinuxNamespaceType](d, "space", "", "PID")})
	}},
	{"no namespaces but mounts", func(b *bundle, _ *rand.Rand) {
		b.linux().Namespaces, b.Hostname = []specs.LinuxNamespace{{Type: specs.MountNamespace}}, ""
	}},
	{"user namespace", func(b *bundle, _ *rand.Rand) { mapped(b, 65536) }},
	{"user namespace of one", func(b *bundle, _ *rand.Rand) { mapped(b, 1) }},
	{"user namespace with a user", func(b *bundle, _ *rand.Rand) { mapped(b, 65536); b.process().User.UID = 1000 }},
	{"user that is not mapped", func(b *bundle, _ *rand.Rand) { mapped(b, 10); b.process().User.UID = 1000 }},
	{"user namespace without maps", func(b *bundle, _ *rand.Rand) { b.namespace(specs.UserNamespace, "") }},
	{"maps without a namespace", func(b *bundle, _ *rand.Rand) { mapped(b, 10); b.without(specs.UserNamespace) }},
	{"maps without root", func(b *bundle, _ *rand.Rand) { mapped(b, 10); b.linux().UIDMappings[0].ContainerID = 5 }},
	{"maps that overlap", func(b *bundle, _ *rand.Rand) {
		mapped(b, 10)
		b.linux().UIDMappings = append(b.linux().UIDMappings, b.linux().UIDMappings[0])
	}},
	{"time namespace", func(b *bundle, d *rand.Rand) {
		b.namespace(specs.TimeNamespace, "")
		b.linux().TimeOffsets = map[string]specs.LinuxTimeOffset{"boottime": {Secs: pick[int64](d, 5, 3600)}, "monotonic": {Secs: 7, Nanosecs: 1}}
	}},
	{"time namespace wrong", func(b *bundle, d *rand.Rand) {
		b.namespace(specs.TimeNamespace, "")
		b.linux().TimeOffsets = map[string]specs.LinuxTimeOffset{pick(d, "realtime", "boottime"): {Nanosecs: 2e9}}
	}},
	{"time without a namespace", func(b *bundle, _ *rand.Rand) {
		b.linux().TimeOffsets = map[string]specs.LinuxTimeOffset{"boottime": {Secs: 1}}
	}},
	{"domain", func(b *bundle, _ *rand.Rand) { b.Domainname = "example.org" }},
	{"host name long", func(b *bundle, d *rand.Rand) {
		b.Hostname = pick(d, "a.b", "x-0123456789012345678901234567890123456789012345678901234567890123456789")
	}},
	{"root read-only", func(b *bundle, _ *rand.Rand) { b.Root.Readonly = true }},
	{"root absolute", func(b *bundle, _ *rand.Rand) { b.Root.Path = b.site.path("rootfs") }},
	{"root is not there", func(b *bundle, _ *rand.Rand) { b.Root.Path = "none" }},
	{"root is a file", func(b *bundle, _ *rand.Rand) { b.Root.Path = "config.json" }},
	{"root is a link", func(b *bundle, _ *rand.Rand) { b.site.link("rootfs", "linked"); b.Root.Path = "linked" }},
	{"root empty", func(b *bundle, _ *rand.Rand) { b.Root.Path = "" }},
	{"no root", func(b *bundle, _ *rand.Rand) { b.Root = nil }},
	{"root without folders", func(b *bundle, _ *rand.Rand) {
		for _, name := range []string{"proc", "dev", "sys", "tmp"} {
			_ = os.Remove(filepath.Join(b.site.dir, "rootfs", name)) // another change may need it
		}
	}},
	{"propagation", func(b *bundle, d *rand.Rand) {
		b.linux().RootfsPropagation = pick(d, "private", "slave", "rslave", "rprivate", "unbindable", "shared", "rshared")
	}},
	{"propagation unknown", func(b *bundle, _ *rand.Rand) { b.linux().RootfsPropagation = "loud" }},
	{"personality", func(b *bundle, d *rand.Rand) {
		b.linux().Personality = &specs.LinuxPersonality{Domain: pick(d, specs.PerLinux, specs.PerLinux32, "LINUX64")}
	}},
	{"version", func(b *bundle, d *rand.Rand) {
		b.Version = pick(d, "1.0.0", "1.0.2-dev", "1.3.0", "2.0.0", "0.9.0", "", "one")
	}},
	{"annotations of others", func(b *bundle, _ *rand.Rand) {
		b.Annotations = map[string]string{"org.example.a": "<&>", "b": "", "bundle": "mine"}
	}},
	{"no linux", func(b *bundle, _ *rand.Rand) { b.text = append(b.text, replaceKey("linux", "null")) }},
	{"network device", func(b *bundle, d *rand.Rand) {
		b.linux().NetDevices = map[string]specs.LinuxNetDevice{pick(d, "none0", "a/b", ".."): {}}
	}},
}
