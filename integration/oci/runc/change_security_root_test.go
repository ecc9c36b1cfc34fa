//go:build root

package runc

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// filter returns a system call filter with one rule.
func filter(action specs.LinuxSeccompAction, names ...string) *specs.LinuxSeccomp {
	return &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Architectures: []specs.Arch{specs.ArchX86_64, specs.ArchX86},
		Syscalls: []specs.LinuxSyscall{{Names: names, Action: action}}}
}

var securityChanges = []change{
	{"privileges may grow", func(b *bundle, _ *rand.Rand) { b.process().NoNewPrivileges = false }},
	{"no capabilities", func(b *bundle, d *rand.Rand) {
		b.process().Capabilities = pick(d, nil, &specs.LinuxCapabilities{})
	}},
	{"many capabilities", func(b *bundle, _ *rand.Rand) {
		all := []string{"CAP_CHOWN", "CAP_SYS_ADMIN", "CAP_NET_ADMIN", "CAP_SYS_PTRACE", "CAP_MKNOD", "CAP_SETUID"}
		b.process().Capabilities = &specs.LinuxCapabilities{Bounding: all, Permitted: all, Effective: all, Inheritable: all}
	}},
	{"ambient capabilities", func(b *bundle, _ *rand.Rand) {
		some := []string{"CAP_NET_BIND_SERVICE", "CAP_KILL"}
		b.process().Capabilities = &specs.LinuxCapabilities{Bounding: some, Permitted: some, Effective: some, Inheritable: some, Ambient: some}
		b.process().User.UID = 1000
	}},
	{"ambient without permitted", func(b *bundle, _ *rand.Rand) { b.process().Capabilities.Ambient = []string{"CAP_SYS_TIME"} }},
	{"effective without permitted", func(b *bundle, _ *rand.Rand) {
		b.process().Capabilities.Effective = append(b.process().Capabilities.Effective, "CAP_SYS_TIME")
	}},
	{"unknown capability", func(b *bundle, d *rand.Rand) {
		b.process().Capabilities.Bounding = append(b.process().Capabilities.Bounding, pick(d, "CAP_FLY", "CHOWN", "cap_chown", ""))
	}},
	{"no masks", func(b *bundle, _ *rand.Rand) { b.linux().MaskedPaths = nil }},
	{"masks of more", func(b *bundle, d *rand.Rand) {
		b.linux().MaskedPaths = append(b.linux().MaskedPaths, pick(d, "/tmp", "/vol", "/exec", "/dev/full", "/proc/sys"), "/proc/keys")
	}},
	{"masks by odd paths", func(b *bundle, d *rand.Rand) {
		b.linux().MaskedPaths = append(b.linux().MaskedPaths, pick(d, "relative", "", "/", "/tmp/../exec", "/proc/../proc/keys", "/none/../exec"))
	}},
	{"nothing read-only", func(b *bundle, _ *rand.Rand) { b.linux().ReadonlyPaths = nil }},
	{"more read-only", func(b *bundle, d *rand.Rand) {
		b.linux().ReadonlyPaths = append(b.linux().ReadonlyPaths, pick(d, "/tmp", "/exec", "/vol", "/dev", "/", "relative"))
	}},
	{"sysctls", func(b *bundle, d *rand.Rand) {
		b.linux().Sysctl = map[string]string{"net.ipv4.ip_unprivileged_port_start": pick(d, "0", "80"), "kernel.msgmax": "4096",
			"kernel.domainname": "d", "fs.mqueue.msg_max": "9"}
	}},
	{"sysctl with slashes", func(b *bundle, _ *rand.Rand) {
		b.linux().Sysctl = map[string]string{"net/ipv4/ip_unprivileged_port_start": "70"}
	}},
	{"sysctl of the host", func(b *bundle, d *rand.Rand) {
		b.linux().Sysctl = map[string]string{pick(d, "kernel.core_pattern", "vm.overcommit_memory", "user.max_user_namespaces", "kernel.hostname", "", "net"): "1"}
	}},
	{"sysctl that is none", func(b *bundle, d *rand.Rand) {
		b.linux().Sysctl = map[string]string{pick(d, "net.none.such", "net.ipv4/../../none"): "1"}
	}},
	{"sysctl of a wrong value", func(b *bundle, _ *rand.Rand) { b.linux().Sysctl = map[string]string{"kernel.msgmax": "much"} }},
	{"filter that refuses", func(b *bundle, d *rand.Rand) {
		b.linux().Seccomp = filter(specs.ActErrno, pick(d, "keyctl", "uname", "getcwd"), "none_such")
		b.linux().Seccomp.Syscalls[0].ErrnoRet = pointer(pick[uint](d, 1, 38, 97))
	}},
	{"filter that kills", func(b *bundle, d *rand.Rand) {
		b.linux().Seccomp = filter(pick(d, specs.ActKill, specs.ActKillProcess, specs.ActTrap), "keyctl")
	}},
	{"filter of the runtime's own calls", func(b *bundle, d *rand.Rand) {
		b.linux().Seccomp = filter(specs.ActErrno, pick(d, "execve", "close", "mount", "write"))
	}},
	{"filter with privileges", func(b *bundle, _ *rand.Rand) {
		b.process().NoNewPrivileges = false
		b.linux().Seccomp = filter(specs.ActErrno, "keyctl")
	}},
	{"filter with arguments", func(b *bundle, d *rand.Rand) {
		b.linux().Seccomp = filter(specs.ActErrno, "keyctl")
		b.linux().Seccomp.Syscalls[0].Args = []specs.LinuxSeccompArg{{Index: pick[uint](d, 0, 1, 9), Value: 0, Op: pick(d, specs.OpEqualTo, specs.OpMaskedEqual, "SCMP_CMP_MAYBE")}}
	}},
	{"filter with flags", func(b *bundle, d *rand.Rand) {
		b.linux().Seccomp = filter(specs.ActErrno, "keyctl")
		b.linux().Seccomp.Flags = []specs.LinuxSeccompFlag{pick[specs.LinuxSeccompFlag](d, "SECCOMP_FILTER_FLAG_LOG", "SECCOMP_FILTER_FLAG_SPEC_ALLOW", "SECCOMP_FILTER_FLAG_NONE")}
	}},
	{"filter wrong", func(b *bundle, d *rand.Rand) {
		b.linux().Seccomp = pick(d, filter("SCMP_ACT_MAYBE", "keyctl"), filter(specs.ActErrno), &specs.LinuxSeccomp{},
			&specs.LinuxSeccomp{DefaultAction: specs.ActErrno, Architectures: []specs.Arch{"SCMP_ARCH_Z80"}, Syscalls: []specs.LinuxSyscall{{Names: []string{"read"}, Action: specs.ActAllow}}})
	}},
	{"filter with a listener that is none", func(b *bundle, d *rand.Rand) {
		b.linux().Seccomp = filter(specs.ActNotify, pick(d, "keyctl", "write"))
		b.linux().Seccomp.ListenerPath = pick(d, "", "/none", b.site.path("volume/file"))
	}},
	{"filter with metadata and no listener", func(b *bundle, _ *rand.Rand) {
		b.linux().Seccomp = filter(specs.ActErrno, "keyctl")
		b.linux().Seccomp.ListenerMetadata = "x"
	}},
	{"mount label", func(b *bundle, _ *rand.Rand) { b.linux().MountLabel = "system_u:object_r:none_t:s0" }},
}

// hookNames are in the order of the specification.
var hookNames = []string{"prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"}

// hook writes its standard input, which is the state, and its name to a file of its own; its
// argument goes to its standard error.
func hook(b *bundle, name, then string) specs.Hook {
	script := fmt.Sprintf("cat >> %s; echo >> %s; echo %s >> %s; %s", b.site.path("hook-"+name), b.site.path("hook-"+name), name, b.site.path("hook-order"), then)
	return specs.Hook{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: []string{"PATH=/bin:/usr/bin"}}
}

// endless is a hook with a time limit in seconds. Its effects before its end would be a
// race, so it does nothing, and does not end by itself.
func endless(seconds int) specs.Hook {
	return specs.Hook{Path: "/bin/sleep", Args: []string{"sleep", "600"}, Timeout: &seconds}
}

// hooks adds one hook of that name.
func addHook(b *bundle, name string, h specs.Hook) {
	if b.Hooks == nil {
		b.Hooks = &specs.Hooks{}
	}
	//lint:ignore SA1019 engines still give it, and both runtimes still run it
	list := map[string]*[]specs.Hook{"prestart": &b.Hooks.Prestart, "createRuntime": &b.Hooks.CreateRuntime, "createContainer": &b.Hooks.CreateContainer,
		"startContainer": &b.Hooks.StartContainer, "poststart": &b.Hooks.Poststart, "poststop": &b.Hooks.Poststop}[name]
	*list = append(*list, h)
}

// outside are the hooks that run in the host's root; startContainer's does not.
func outside(d *rand.Rand) string {
	return pick(d, "prestart", "createRuntime", "createContainer", "poststart", "poststop")
}

var hookChanges = []change{
	{"hooks", func(b *bundle, _ *rand.Rand) {
		for _, name := range hookNames {
			if name != "startContainer" {
				addHook(b, name, hook(b, name, "true"))
				addHook(b, name, hook(b, name, "env >> "+b.site.path("hook-"+name)))
			}
		}
	}},
	{"hook inside", func(b *bundle, d *rand.Rand) {
		addHook(b, "startContainer", specs.Hook{Path: pick(d, "/probe", "/none"), Args: []string{"probe", pick(d, "ids", "none")}})
	}},
	{"hook that fails", func(b *bundle, d *rand.Rand) {
		name := outside(d)
		addHook(b, name, hook(b, name, "echo sorry >&2; exit 3"))
	}},
	{"hook that is not there", func(b *bundle, d *rand.Rand) { addHook(b, outside(d), specs.Hook{Path: "/none"}) }},
	{"hook by a relative path", func(b *bundle, d *rand.Rand) { addHook(b, outside(d), specs.Hook{Path: "none"}) }},
	{"hook that takes long", func(b *bundle, d *rand.Rand) {
		addHook(b, outside(d), endless(1))
	}},
	{"hook without time", func(b *bundle, d *rand.Rand) { addHook(b, outside(d), endless(pick(d, 0, -1))) }},
}

// replaceKey replaces the value of a top-level key of the text.
func replaceKey(key, value string) func(string) string {
	return func(text string) string {
		before, rest, found := strings.Cut(text, "\n \""+key+"\": ")
		if !found {
			return text
		}
		end := strings.Index(rest, "\n \"")
		if end < 0 {
			end = strings.LastIndex(rest, "\n}")
			return before + "\n \"" + key + "\": " + value + rest[end:]
		}
		return before + "\n \"" + key + "\": " + value + "," + rest[end:]
	}
}

// cut keeps only so much of the text.
func cut(part float64) func(string) string {
	return func(text string) string { return text[:int(part*float64(len(text)))] }
}

// brokenChanges make config.json invalid.
var brokenChanges = []change{
	{"text cut off", func(b *bundle, d *rand.Rand) { b.text = append(b.text, cut(pick(d, 0, 0.01, 0.5, 0.99))) }},
	{"text of another kind", func(b *bundle, d *rand.Rand) {
		other := pick(d, "null", "[]", "0", `"text"`, "{}", "{} {}", "\ufeff{}", "{'a':1}", "// x\n{}")
		b.text = append(b.text, func(string) string { return other })
	}},
	{"text and more", func(b *bundle, d *rand.Rand) {
		more := pick(d, "}", "\n\n", "{}", "garbage")
		b.text = append(b.text, func(text string) string { return text + more })
	}},
	{"key of another kind", func(b *bundle, d *rand.Rand) {
		b.text = append(b.text, replaceKey(pick(d, "process", "root", "mounts", "linux", "hostname", "ociVersion"), pick(d, "null", "7", `"x"`, "[]", "{}", "true")))
	}},
	{"unknown keys", func(b *bundle, _ *rand.Rand) {
		b.text = append(b.text, func(text string) string { return strings.Replace(text, "{", `{ "unknown": {"a": [1]}, `, 1) })
	}},
	{"key twice", func(b *bundle, _ *rand.Rand) {
		b.text = append(b.text, func(text string) string { return strings.Replace(text, "{", `{ "hostname": "first", `, 1) })
	}},
	{"number too large", func(b *bundle, d *rand.Rand) {
		number := pick(d, `"uid": 4294967296`, `"uid": -1`, `"uid": 1.5`, `"uid": "0"`, `"uid": 1e3`)
		b.text = append(b.text, func(text string) string { return strings.Replace(text, `"uid": 0`, number, 1) })
	}},
	{"case of keys", func(b *bundle, _ *rand.Rand) {
		b.text = append(b.text, func(text string) string { return strings.Replace(text, `"process"`, `"Process"`, 1) })
	}},
	{"no config", func(b *bundle, _ *rand.Rand) { b.flags = []string{"--bundle", b.site.path("volume")} }},
	{"no bundle", func(b *bundle, _ *rand.Rand) { b.flags = []string{"--bundle", b.site.path("none")} }},
	{"pid file nowhere", func(b *bundle, _ *rand.Rand) { b.flags = []string{"--pid-file", b.site.path("none/pid")} }},
}
