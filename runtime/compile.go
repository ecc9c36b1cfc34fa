package runtime

import (
	"errors"
	"fmt"
	"math"
	goruntime "runtime"
	"slices"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/rlimits"
	"clove.run/clove/rootfs"
)

// surroundings are the results of the launch's steps before create.
type surroundings struct {
	Root        string // the agent's root in the launch thread's mount namespace
	HostID      uint32 // host id of id 0 inside
	NetworkPath string // empty: the host's network
	CgroupsPath string
	CgroupV2    bool // one hierarchy: the kernel kills a whole cgroup on OOM
	SwapLimited bool // this host can count swap
	Unenforced  []string
	Raised      []agent.Rlimit // hard limits above clove's own
	ThermalDirs []string       // one for each CPU
	Clocks      clocks         // the host's, now
}

// initExecutable is clove-init's descriptor inside the sandbox: the binary has
// no name in the agent's file system.
const initExecutable = "/proc/self/fd/5"

// cpuPeriod is the kernel's default CFS period in microseconds, and
// cpuQuotaMin the smallest quota that it takes (sched-bwc.rst).
const (
	cpuPeriod   = 100_000
	cpuQuotaMin = 1_000
)

// compile is the only place where a Spec becomes an OCI config. It is pure, so golden files
// can pin its output. Decision 1 (docs/decisions) says why there is one internal form.
func compile(spec agent.Spec, s surroundings) *specs.Spec {
	config := &specs.Spec{
		Version:  specs.Version,
		Hostname: hostname(spec),
		Root:     &specs.Root{Path: s.Root},
		Process:  initProcess(spec, s.Raised),
		Mounts:   mounts(spec),
		Linux: &specs.Linux{
			Namespaces:        namespaces(s.NetworkPath),
			UIDMappings:       idMap(s.HostID),
			GIDMappings:       idMap(s.HostID),
			CgroupsPath:       s.CgroupsPath,
			Resources:         resources(spec.Limits, s),
			RootfsPropagation: "private",
			MaskedPaths:       slices.Concat(maskedPaths, s.ThermalDirs),
			ReadonlyPaths:     readonlyPaths,
		},
	}
	if spec.ClockStart > 0 {
		config.Linux.Namespaces = append(config.Linux.Namespaces, specs.LinuxNamespace{Type: specs.TimeNamespace})
		config.Linux.TimeOffsets = s.Clocks.offsets(spec.ClockStart)
	}
	return config
}

// hostname is the run's id by default. The host's own name would identify the host.
func hostname(spec agent.Spec) string {
	if spec.Hostname != "" {
		return spec.Hostname
	}
	return string(spec.ID)
}

// initProcess is clove-init; the agent itself is in its orders. clove-init holds the
// agent's capabilities beside its own: with no_new_privs on, a process can only pass on
// what it has.
func initProcess(spec agent.Spec, raised []agent.Rlimit) *specs.Process {
	held := slices.Concat(initCapabilities, capabilitiesOf(spec))
	slices.Sort(held)
	held = slices.Compact(held)
	return &specs.Process{
		User:            specs.User{UID: agent.InitUID, GID: agent.InitUID},
		Args:            []string{initExecutable},
		Cwd:             "/",
		NoNewPrivileges: true,
		// Ambient, or an id other than 0 would lose them all at execve, capabilities(7).
		Capabilities: &specs.LinuxCapabilities{
			Bounding: held, Permitted: held, Effective: held, Inheritable: held, Ambient: held},
		Rlimits: ociRlimits(raised),
	}
}

// ociRlimits raises the soft limits as well: they are clove-init's own, which
// sets the agent's.
func ociRlimits(raised []agent.Rlimit) []specs.POSIXRlimit {
	var oci []specs.POSIXRlimit
	for _, r := range raised {
		oci = append(oci, specs.POSIXRlimit{Type: rlimits.OCIName(r.Name), Soft: r.Hard, Hard: r.Hard})
	}
	return oci
}

// initCapabilities let clove-init become the agent, hand it its terminal and
// kill whatever it leaves. They hold in the sandbox's user namespace only.
var initCapabilities = []string{"CAP_CHOWN", "CAP_KILL", "CAP_SETGID", "CAP_SETUID", "CAP_SETPCAP"}

// capabilitiesOf is none for everybody but root, whose few hold only over ids
// and files of the agent's own user namespace. Where root writes files of the
// host's, it lacks FSETID: with it, a write into a set-user-ID program would
// leave the bit on (inode_setattr's rules, chmod(2)).
func capabilitiesOf(spec agent.Spec) []string {
	if spec.User.UID != 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(agent.RootCapabilities), func(c string) bool {
		return c == "CAP_FSETID" && writesHostFiles(spec) || slices.Contains(spec.CapDrop, c) || slices.Contains(spec.CapDrop, agent.AllCapabilities)
	})
}

// namespaces are all new ones; without a path the network is the host's. createSandbox adds
// the path of the user namespace later.
func namespaces(networkPath string) []specs.LinuxNamespace {
	list := []specs.LinuxNamespace{
		{Type: specs.UserNamespace},
		{Type: specs.PIDNamespace},
		{Type: specs.MountNamespace},
		{Type: specs.UTSNamespace},
		{Type: specs.IPCNamespace},
		{Type: specs.CgroupNamespace},
	}
	if networkPath == "" {
		return list
	}
	return append(list, specs.LinuxNamespace{Type: specs.NetworkNamespace, Path: networkPath})
}

// idMap is one range, so host id minus the first one is always the id inside.
func idMap(hostID uint32) []specs.LinuxIDMapping {
	return []specs.LinuxIDMapping{{ContainerID: 0, HostID: hostID, Size: agent.IDsPerAgent}}
}

// mounts are the kernel's own file systems; everything made of files is in the root already
// when libcontainer pivots into it. Their options are close to those of runc's default
// config. /dev is only as large as its nodes and links need, and /dev/shm has the size that
// was asked for.
func mounts(spec agent.Spec) []specs.Mount {
	all := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs",
			Options: []string{"nosuid", "noexec", "strictatime", "mode=755", "size=64k"}},
		// gid 5 is the group tty, as in runc's own default config.
		{Destination: "/dev/pts", Type: "devpts", Source: "devpts",
			Options: []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5", ptysMax}},
		{Destination: "/dev/shm", Type: "tmpfs", Source: "shm",
			Options: []string{"nosuid", "noexec", "nodev", "mode=1777", fmt.Sprintf("size=%d", spec.Limits.ShmBytes)}},
		{Destination: "/dev/mqueue", Type: "mqueue", Source: "mqueue", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup",
			Options: []string{"ro", "nosuid", "noexec", "nodev"}},
	}
	// With a list of writable places, nothing of /dev that could hold a file is writable
	// but what the list names. libcontainer remounts /dev when its nodes are made.
	for i, m := range all {
		if slices.Contains([]string{"/dev", "/dev/shm", "/dev/mqueue"}, m.Destination) && !spec.Files.StaysWritable(m.Destination) {
			all[i].Options = append(m.Options, "ro")
		}
	}
	return all
}

// ptysMax bounds the agent's pseudo-terminals: there are kernel.pty.max of them
// (4096) for all of the host, outside of any cgroup.
const ptysMax = "max=256"

// resources leaves out what the user agreed to do without: libcontainer would
// fail on it.
func resources(l agent.Limits, s surroundings) *specs.LinuxResources {
	holds := func(control string) bool { return !slices.Contains(s.Unenforced, control) }
	r := &specs.LinuxResources{
		// Deny all: specconv adds its list of harmless devices (AllowedDevices) behind this
		// rule.
		Devices: []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}},
		Memory:  &specs.LinuxMemory{},
	}
	if holds(agent.ControlMemory) {
		r.Memory.Limit = &l.MemoryBytes
		if s.CgroupV2 {
			// Out of memory, the kernel then kills the agent as a whole.
			r.Unified = map[string]string{"memory.oom.group": "1"}
		}
	}
	if holds(agent.ControlMemorySwap) && s.SwapLimited {
		r.Memory.Swap = &l.MemorySwapBytes
	}
	if holds(agent.ControlPids) {
		r.Pids = &specs.LinuxPids{Limit: &l.Pids}
	}
	r.CPU = cpu(l, holds)
	return r
}

// cpu leaves quota and period absent without --cpus, which is no limit. A quota below the
// kernel's minimum would fail the start, so a tiny share is rounded up to it.
func cpu(l agent.Limits, holds func(string) bool) *specs.LinuxCPU {
	c := &specs.LinuxCPU{}
	if holds(agent.ControlCPUSet) {
		c.Cpus = l.CPUSet
	}
	if l.CPUs > 0 && holds(agent.ControlCPU) {
		quota := max(int64(math.Round(l.CPUs*cpuPeriod)), cpuQuotaMin)
		period := uint64(cpuPeriod)
		c.Quota, c.Period = &quota, &period
	}
	return c
}

// maskedPaths are what containerd and Docker hide, and beyond them the tables
// that show what other tenants do: interrupts, temperatures, power (CVE-2020-8694).
var maskedPaths = []string{
	"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys",
	"/proc/latency_stats", "/proc/sched_debug", "/proc/scsi", "/proc/timer_list", "/proc/timer_stats",
	"/sys/devices/virtual/powercap", "/sys/firmware",
}

// readonlyPaths are Docker's, the host's pressure files, which let everybody set
// up alarms in the kernel, and the tmpfs that libcontainer mounts the v1
// hierarchies in, which it leaves writable for root.
var readonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/pressure", "/proc/sys", "/proc/sysrq-trigger", "/sys/fs/cgroup"}

// rootConfig is the part of a spec that the root is made of.
func rootConfig(paths Paths, spec agent.Spec, hostID uint32) rootfs.Config {
	c := rootfs.Config{
		ID: string(spec.ID), HostID: hostID, AgentUID: spec.User.UID, AgentGID: spec.User.GID,
		Hostname: hostname(spec), StateDir: paths.State, RunDir: paths.runDirectory(spec.ID),
		DiskBytes: spec.Limits.DiskBytes, MemoryBytes: spec.Limits.MemoryBytes,
		Rootfs: spec.Files.Rootfs, Workspace: spec.Files.Workspace, ReadOnly: spec.Files.ReadOnly, Writable: spec.Files.Writable, Execute: spec.Files.Execute, Command: commandOf(spec),
		Prefixes: spec.Files.Prefixes, MoreHosts: moreHosts(spec),
	}
	if c.NoRepository = spec.Files.GitDir == agent.NoGitDir; !c.NoRepository {
		c.GitDir = spec.Files.GitDir
	}
	if h := spec.Files.Home; h != nil {
		c.Home, c.HomeFolder, c.Keep = h.Name, h.Folder, spec.Files.Keep
	}
	if spec.Kernel.HasSocket() || len(spec.Kernel.ReadableSecrets()) < len(spec.Kernel.Secrets) {
		c.Services, c.Authority = paths.services(spec.ID), spec.Kernel.SwapsSecrets()
	}
	for _, b := range spec.Files.Binds {
		c.Binds = append(c.Binds, rootfs.Bind{Source: b.Source, Target: b.Target, ReadOnly: b.ReadOnly, CopyOnWrite: b.CopyOnWrite, Secrets: b.Secrets})
	}
	binds, execute := toolMount(spec)
	c.Binds = append(c.Binds, binds...)
	if c.Execute != nil {
		c.Execute = slices.Concat(c.Execute, execute)
	}
	for _, t := range spec.Files.Tmpfs {
		c.Tmpfs = append(c.Tmpfs, rootfs.Tmpfs{Target: t.Target, SizeBytes: t.SizeBytes, Mode: t.Mode})
	}
	c.Tmpfs = append(c.Tmpfs, plainMount(spec)...)
	return c
}

// planFailed says what of a request makes its root impossible.
func planFailed(err error) error {
	if list := (*rootfs.ListError)(nil); errors.As(err, &list) {
		return &agent.Error{Kind: agent.KindInvalid, Step: "--allow-exec", Message: list.Error(), Hint: list.Hint}
	}
	return &agent.Error{Kind: agent.KindInvalid, Step: "files", Message: "cannot build the root", Err: err}
}

// onlineCPUs is how many CPUs this process may run on.
func onlineCPUs() int { return goruntime.NumCPU() }

// clocks are the two that a time namespace can shift, time_namespaces(7).
type clocks struct{ monotonic, boot time.Duration }

// hostClocks reads them as late as possible: what the launch still takes is what the agent
// finds on them beside the start that was asked for.
func hostClocks() clocks {
	var monotonic, boot unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &monotonic) // fails only for an unknown clock
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot)
	return clocks{time.Duration(monotonic.Nano()), time.Duration(boot.Nano())}
}

// offsets make both clocks begin at start.
func (c clocks) offsets(start time.Duration) map[string]specs.LinuxTimeOffset {
	return map[string]specs.LinuxTimeOffset{"monotonic": timeOffset(start - c.monotonic), "boottime": timeOffset(c.ahead(start))}
}

// ahead is how far CLOCK_BOOTTIME inside is before the host's.
func (c clocks) ahead(start time.Duration) time.Duration {
	if start == 0 {
		return 0
	}
	return start - c.boot
}

// timeOffset rounds towards the past, as the kernel's nanoseconds have no sign.
func timeOffset(d time.Duration) specs.LinuxTimeOffset {
	seconds := d / time.Second
	if d < 0 && d%time.Second != 0 {
		seconds--
	}
	return specs.LinuxTimeOffset{Secs: int64(seconds), Nanosecs: uint32(d - seconds*time.Second)}
}
