//go:build root

package runc

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// bundle is a bundle that is being made.
type bundle struct {
	*specs.Spec
	site  *site
	flags []string                   // flags of create
	text  []func(json string) string // changes to the text of config.json, made last
}

// change is the effect of one row of the table on a bundle.
type change struct {
	name  string
	apply func(b *bundle, d *rand.Rand)
}

// looked are the paths that the process inside tries to read and write.
var looked = []string{"/proc/keys", "/proc/kcore", "/proc/timer_list", "/proc/sysrq-trigger", "/proc/sys/kernel/domainname", "/proc/sys/kernel/msgmax",
	"/proc/sys/net/ipv4/ip_unprivileged_port_start", "/proc/sys/fs/mqueue/msg_max", "/proc/acpi", "/sys/firmware", "/sys/fs/cgroup", "/tmp", "/tmp/new", "/vol", "/vol/file"}

// newBundle returns a valid bundle, as engines make them.
func newBundle(s *site) *bundle {
	capabilities := []string{"CAP_AUDIT_WRITE", "CAP_KILL", "CAP_NET_BIND_SERVICE", "CAP_CHOWN", "CAP_DAC_OVERRIDE"}
	b := &bundle{site: s, Spec: &specs.Spec{
		Version: specs.Version,
		Root:    &specs.Root{Path: "rootfs"},
		Process: &specs.Process{
			Args: append([]string{"/probe", "world"}, looked...), Cwd: "/", NoNewPrivileges: true,
			Env:          []string{"PATH=/bin:/", "TERM=xterm"},
			Capabilities: &specs.LinuxCapabilities{Bounding: capabilities, Permitted: capabilities, Effective: capabilities},
			Rlimits:      []specs.POSIXRlimit{{Type: "RLIMIT_NOFILE", Hard: 1024, Soft: 1024}},
		},
		Hostname: "place",
		Mounts: []specs.Mount{
			{Destination: "/proc", Type: "proc", Source: "proc"},
			{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "strictatime", "mode=755", "size=65536k"}},
			{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"}},
			{Destination: "/dev/shm", Type: "tmpfs", Source: "shm", Options: []string{"nosuid", "noexec", "nodev", "mode=1777", "size=65536k"}},
			{Destination: "/dev/mqueue", Type: "mqueue", Source: "mqueue", Options: []string{"nosuid", "noexec", "nodev"}},
			{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "noexec", "nodev", "ro"}},
		},
		Linux: &specs.Linux{
			MaskedPaths:   []string{"/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware", "/none"},
			ReadonlyPaths: []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger", "/none"},
			Resources:     &specs.LinuxResources{Devices: []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}}},
			Namespaces: []specs.LinuxNamespace{{Type: specs.PIDNamespace}, {Type: specs.NetworkNamespace}, {Type: specs.IPCNamespace},
				{Type: specs.UTSNamespace}, {Type: specs.MountNamespace}, {Type: specs.CgroupNamespace}},
		},
	}}
	s.write("rootfs/exec", "#!/none\n")
	s.mkdir("volume")
	s.write("volume/file", "of the volume")
	return b
}

func (b *bundle) process() *specs.Process { return b.Spec.Process }
func (b *bundle) linux() *specs.Linux     { return b.Spec.Linux }
func (b *bundle) resources() *specs.LinuxResources {
	if b.Spec.Linux.Resources == nil {
		b.Spec.Linux.Resources = &specs.LinuxResources{}
	}
	return b.Spec.Linux.Resources
}

// mount adds a mount.
func (b *bundle) mount(destination, kind, source string, options ...string) {
	b.Mounts = append(b.Mounts, specs.Mount{Destination: destination, Type: kind, Source: source, Options: options})
}

// unmount removes a mount from the config.
func (b *bundle) unmount(destination string) {
	b.Mounts = slices.DeleteFunc(b.Mounts, func(m specs.Mount) bool { return m.Destination == destination })
}

// without removes the namespaces of a kind; namespace adds or replaces one.
func (b *bundle) without(kind specs.LinuxNamespaceType) {
	b.linux().Namespaces = slices.DeleteFunc(b.linux().Namespaces, func(n specs.LinuxNamespace) bool { return n.Type == kind })
}

func (b *bundle) namespace(kind specs.LinuxNamespaceType, path string) {
	b.without(kind)
	b.linux().Namespaces = append(b.linux().Namespaces, specs.LinuxNamespace{Type: kind, Path: path})
}

// save writes config.json.
func (b *bundle) save() {
	b.site.t.Helper()
	encoded, err := json.MarshalIndent(b.Spec, "", " ")
	if err != nil {
		b.site.t.Fatal(err)
	}
	text := string(encoded)
	for _, apply := range b.text {
		text = apply(text)
	}
	b.site.config(text)
}

// pick returns one of several values.
func pick[T any](d *rand.Rand, from ...T) T { return from[d.IntN(len(from))] }

// drawn returns the changes of the bundle with this number: first each change alone, then two
// to four together.
func drawn(d *rand.Rand, number int) []change {
	if number < len(changes()) {
		return changes()[number : number+1]
	}
	var some []change
	for _, i := range d.Perm(len(changes()))[:2+d.IntN(3)] {
		some = append(some, changes()[i])
	}
	return some
}

// dice returns the random numbers of the bundle with this number.
func dice(seed, number int) *rand.Rand { return rand.New(rand.NewPCG(uint64(seed), uint64(number))) }

// generate makes the bundle with this number, which is always the same.
func generate(s *site, seed, number int) *bundle {
	d, b := dice(seed, number), newBundle(s)
	for _, c := range drawn(d, number) {
		c.apply(b, d)
	}
	b.save()
	return b
}

// names returns the names of its changes.
func names(seed, number int) string {
	var names []string
	for _, c := range drawn(dice(seed, number), number) {
		names = append(names, c.name)
	}
	return strings.Join(names, ", ")
}

// changes returns all tables in one.
func changes() []change {
	return slices.Concat(processChanges, placeChanges, mountChanges, resourceChanges, securityChanges, hookChanges, brokenChanges)
}

func TestEachChangeHasAName(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range changes() {
		if c.name == "" || seen[c.name] {
			t.Errorf("the name %q is there twice", c.name)
		}
		seen[c.name] = true
	}
	if len(seen) < 100 {
		t.Errorf("there are only %d changes", len(seen))
	}
}
