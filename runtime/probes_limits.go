package runtime

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/internal/rlimits"
	"clove.run/clove/landlock"
)

func findLayout(h *probes) (found, missing string) {
	if h.cgroupsErr != nil {
		return "", h.cgroupsErr.Error()
	}
	return string(h.cgroups.Mode()), ""
}

// generation is how a record names the mechanism of a controller: "cgroup2" or "cgroup1".
func generation(h *cgroups.Host) string {
	if h.Mode() == cgroups.ModeV2 {
		return "cgroup2"
	}
	return "cgroup1"
}

func controllerProbe(name string) func(*probes) (string, string) {
	return func(h *probes) (found, missing string) {
		if h.cgroupsErr != nil {
			return "", h.cgroupsErr.Error()
		}
		if !h.cgroups.Has(name) {
			return "", h.cgroups.Missing(name)
		}
		return generation(h.cgroups), ""
	}
}

// findAccounting: v2 counts CPU time in every cgroup, v1 in its own hierarchy.
func findAccounting(h *probes) (found, missing string) {
	if h.cgroupsErr == nil && h.cgroups.Mode() == cgroups.ModeV2 {
		return generation(h.cgroups), ""
	}
	return controllerProbe("cpuacct")(h)
}

// findDevices: v2 has no controller, its rules are programs (bpf(2)).
func findDevices(h *probes) (found, missing string) {
	if h.cgroupsErr == nil && h.cgroups.Mode() == cgroups.ModeV2 {
		return "cgroup2-bpf", ""
	}
	return controllerProbe("devices")(h)
}

// findSwap: a host that has no swap enforces "no swap" by itself.
func findSwap(h *probes) (found, missing string) {
	if h.cgroupsErr != nil {
		return "", h.cgroupsErr.Error()
	}
	if h.cgroups.SwapAccounting() {
		return generation(h.cgroups), ""
	}
	swaps, err := os.ReadFile("/proc/swaps")
	if err == nil && strings.Count(strings.TrimSpace(string(swaps)), "\n") == 0 {
		return "no-swap-host", ""
	}
	return "", "the kernel does not count swap"
}

// findSocketBuffers: netlink queues are in no cgroup, so a watch holds them. See sockets.go.
func findSocketBuffers(h *probes) (found, missing string) {
	if found, missing = controllerProbe("memory")(h); missing != "" {
		return "", missing
	}
	if !h.cgroups.CountsSockets() {
		return "", "the kernel does not count socket buffers"
	}
	return found + ",watch", ""
}

func findRlimits(*probes) (found, missing string) {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return "", err.Error()
	}
	return fmt.Sprintf("hard nofile %d", files.Max), ""
}

// hardLimit implements prober.
func (h *probes) hardLimit(name string) (limit uint64, raisable bool) {
	var own unix.Rlimit
	number, known := rlimits.Resource(name)
	if !known || unix.Getrlimit(number, &own) != nil {
		return 0, false
	}
	return own.Max, hasCapability(unix.CAP_SYS_RESOURCE)
}

// attainable lowers each limit to what this process may give, for a run that
// agreed to do without the rest.
func attainable(asked []agent.Rlimit, h prober) []agent.Rlimit {
	limits := slices.Clone(asked)
	for i, r := range limits {
		if limit, raisable := h.hardLimit(r.Name); !raisable {
			limits[i].Soft, limits[i].Hard = min(r.Soft, limit), min(r.Hard, limit)
		}
	}
	return limits
}

// raised returns the limits whose hard value is above clove's own: they are
// raised from outside, before the sandbox loses the privilege to do so.
func raised(asked []agent.Rlimit, h prober) []agent.Rlimit {
	var above []agent.Rlimit
	for _, r := range asked {
		if limit, _ := h.hardLimit(r.Name); r.Hard > limit {
			above = append(above, r)
		}
	}
	return above
}

// findPrivilege: root of a container may lack what root of a host has, and then
// the first thing to fail would be some mount or ioctl that explains nothing.
func findPrivilege(*probes) (found, missing string) {
	if os.Geteuid() != 0 {
		return "", fmt.Sprintf("running as uid %d", os.Geteuid())
	}
	for _, c := range needed {
		if !hasCapability(c.number) {
			return "", fmt.Sprintf("root without CAP_%s: %s; give it, in Docker with --cap-add %s (docs/docker.md lists all)", c.name, c.why, c.name)
		}
	}
	if !inFirstUserNamespace() {
		return "", "root of a user namespace, which may mount no layer; start the container without one, in Docker with --userns=host"
	}
	if hasCapability(unix.CAP_SYS_RESOURCE) {
		return "root", ""
	}
	return "root without CAP_SYS_RESOURCE: hard rlimits cannot be raised", ""
}

// capability is one that clove needs, and what for.
type capability struct {
	name   string // without CAP_
	number int
	why    string
}

// needed are all without which some run fails or, worse, cannot be ended. Each was
// found by leaving it out of a container's; the tests of the Docker image do that again.
var needed = []capability{
	{"SYS_ADMIN", unix.CAP_SYS_ADMIN, "it mounts, and makes namespaces"},
	{"NET_ADMIN", unix.CAP_NET_ADMIN, "it makes the agent's network and the rules that lead to the gate"},
	{"SYS_PTRACE", unix.CAP_SYS_PTRACE, "it opens the namespaces of processes in another user namespace"},
	{"SYS_NICE", unix.CAP_SYS_NICE, "it moves processes of another user namespace into a cpuset"},
	{"SETUID", unix.CAP_SETUID, "it maps the agent's ids"},
	{"SETGID", unix.CAP_SETGID, "it maps the agent's ids"},
	{"CHOWN", unix.CAP_CHOWN, "the agent's files belong to the agent's ids"},
	{"DAC_OVERRIDE", unix.CAP_DAC_OVERRIDE, "it writes in directories of the agent's"},
	{"FOWNER", unix.CAP_FOWNER, "it sets the modes of files that belong to the agent"},
	{"KILL", unix.CAP_KILL, "it ends processes with the agent's ids"},
	{"MKNOD", unix.CAP_MKNOD, "it makes the nodes of loop devices"},
	{"SYS_CHROOT", unix.CAP_SYS_CHROOT, "it enters mount namespaces"},
	{"SETPCAP", unix.CAP_SETPCAP, "the gate gives up its rights permanently"},
	{"NET_BIND_SERVICE", unix.CAP_NET_BIND_SERVICE, "the gate answers on the port of name servers"},
}

// buildingCalls are system calls that build a sandbox and that an engine's filter
// may forbid, each with arguments with which it does nothing. A filter answers EPERM
// or ENOSYS; the kernel itself finds something else wrong with these.
var buildingCalls = []struct {
	name string
	try  func() error
}{
	{"pivot_root", func() error { return unix.PivotRoot("", "") }},
	{"keyctl", func() error { _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, false); return err }},
	{"mount_setattr", func() error { return unix.MountSetattr(-1, "", unix.AT_EMPTY_PATH, &unix.MountAttr{}) }},
	{"open_tree", func() error { _, err := unix.OpenTree(-1, "", unix.AT_EMPTY_PATH); return err }},
	{"move_mount", func() error { return unix.MoveMount(-1, "", -1, "", unix.MOVE_MOUNT_F_EMPTY_PATH) }},
	{"setns", func() error { return unix.Setns(-1, 0) }},
}

// findCalls says nothing without CAP_SYS_ADMIN: then the kernel refuses them as a filter does.
func findCalls(*probes) (found, missing string) {
	if !hasCapability(unix.CAP_SYS_ADMIN) {
		return "not asked without CAP_SYS_ADMIN", ""
	}
	for _, call := range buildingCalls {
		if err := call.try(); err == unix.EPERM || err == unix.ENOSYS {
			return "", call.name + " is refused (" + err.Error() + ")"
		}
	}
	return "none forbidden", ""
}

// firstUserNamespace is the inode of the user namespace that the kernel boots
// with, USER_NS_INIT_INO in linux/nsfs.h.
const firstUserNamespace = 0xEFFFFFFD

func inFirstUserNamespace() bool {
	var own unix.Stat_t
	return unix.Stat("/proc/self/ns/user", &own) == nil && own.Ino == firstUserNamespace
}

// hasCapability reports whether this process holds a capability, capget(2).
func hasCapability(capability int) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	// Version 3 of the interface has two words of 32 capabilities each.
	return data[capability/32].Effective&(1<<(capability%32)) != 0
}

// findRunDirectory looks whether others may pass through all of its parents: the
// sandbox's root has no id of the host's.
func findRunDirectory(h *probes) (found, missing string) {
	path, err := filepath.Abs(h.run)
	if err != nil {
		return "", err.Error()
	}
	for real, err := filepath.EvalSymlinks(path); ; real, err = filepath.EvalSymlinks(path) {
		if err == nil {
			path = real
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || path == "/" {
			return "", err.Error()
		}
		path = filepath.Dir(path) // clove makes what is not there
	}
	for dir := path; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		switch {
		case err != nil:
			return "", err.Error()
		// Execute for others is what looking up a path takes. Root skips this check, the
		// sandbox does not.
		case info.Mode()&0o001 == 0:
			return "", fmt.Sprintf("others may not pass through %s (mode %04o), where %s is", dir, info.Mode().Perm(), h.run)
		case dir == "/":
			return h.run, ""
		}
	}
}

// findLandlock asks the kernel for the version of the interface.
func findLandlock(*probes) (found, missing string) {
	version, err := landlock.Version()
	if err != nil {
		return "", err.Error()
	}
	found = fmt.Sprintf("ABI %d", version)
	if lacks := landlock.Lacks(version); lacks != "" {
		found += ", without " + lacks
	}
	return found, ""
}
