package runtime

import (
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/egress/host"
	"clove.run/clove/netns"
	"clove.run/clove/rootfs"
)

// probes find what this machine can enforce. Each asks the kernel itself instead of
// comparing version numbers, because distributions port features back.
type probes struct {
	cgroups    *cgroups.Host
	cgroupsErr error
	init       string
	run        string // the directory of the run directories
}

// gatherProbes keeps an error for the probes that it concerns, so that doctor can still
// show the others.
func gatherProbes(init, run string) *probes {
	h := &probes{init: init, run: run}
	h.cgroups, h.cgroupsErr = detect()
	return h
}

// probe is one row of doctor: a kernel feature or tool, the controls that
// stand on it, and what to do when it is missing.
type probe struct {
	name     string
	controls []string // agent.Control* names that cannot hold without it
	enforces string   // what clove does with it, for people
	remedy   string
	// find returns what is there, or why nothing is.
	find func(*probes) (found, missing string)
}

// probeTable is in the order in which doctor shows it: what everything else needs comes
// first, because its absence explains later rows. Where several rows serve one control, the
// last one names the mechanism (mechanism). Decision 10 (docs/decisions) says why doctor,
// the start and the record share it.
var probeTable = []probe{
	{"privilege", []string{agent.ControlNamespaces}, "everything: clove makes namespaces and cgroups as root", "run clove with sudo", findPrivilege},
	{"system calls", []string{agent.ControlNamespaces}, "a root of its own; a container's filter may forbid what builds it",
		"start the container with --security-opt seccomp=deploy/docker/seccomp.json", findCalls},
	{"run directory", []string{agent.ControlNamespaces}, "the sandbox, which has no rights on the host, passes through it to its own root",
		"name another directory with --run-dir, or let others search that one (chmod o+x)", findRunDirectory},
	{"clove-init", nil, "reaps, forwards signals and holds the deadline inside", "run `make build`", findInitBinary},
	{"user namespaces", []string{agent.ControlNamespaces}, "an id range for each agent; root inside has no rights outside",
		"sysctl user.max_user_namespaces=65536", namespaceProbe("user")},
	{"pid namespaces", []string{agent.ControlNamespaces}, "the agent sees and signals its own processes only", kernelRemedy("PID_NS"), namespaceProbe("pid")},
	{"mount namespaces", []string{agent.ControlNamespaces}, "a root of its own; mounts that die with it", kernelRemedy("NAMESPACES"), namespaceProbe("mnt")},
	{"ipc namespaces", []string{agent.ControlNamespaces}, "no shared memory or queues with others", kernelRemedy("IPC_NS"), namespaceProbe("ipc")},
	{"uts namespaces", []string{agent.ControlNamespaces}, "a host name of its own", kernelRemedy("UTS_NS"), namespaceProbe("uts")},
	{"cgroup namespaces", []string{agent.ControlNamespaces}, "the agent sees its own limits, not the host's tree", kernelRemedy("CGROUPS"), namespaceProbe("cgroup")},
	{"network namespaces", []string{agent.ControlNetwork}, "loopback and no way out", kernelRemedy("NET_NS"), namespaceProbe("net")},
	{"clove-gate", []string{agent.ControlEgress}, "--network allowlist and public, --publish, --host-port", "run `make build`", findGateBinary},
	{"transparent sockets", []string{agent.ControlEgress}, "every connection of the agent ends at the gate", kernelRemedy("NFT_TPROXY"), findTransparent},
	{"noexec mounts", []string{agent.ControlExecute}, "--allow-exec: no file is executed or mapped as code but those of the list", "use a kernel from 5.12 on", findNoexec},
	{"seccomp filters", []string{agent.ControlSeccomp}, "the system call filter", kernelRemedy("SECCOMP_FILTER"), findSeccomp},
	{"landlock", []string{agent.ControlLandlock, agent.ControlRead}, "--allow-read; the rules of files a second time, from inside", "boot a kernel with CONFIG_SECURITY_LANDLOCK, and landlock in its list of lsm=", findLandlock},
	{"cgroup layout", nil, "where the limits live", "mount cgroup2 at /sys/fs/cgroup", findLayout},
	{"memory controller", []string{agent.ControlMemory}, "--memory; the whole agent dies when it is out of it", "boot with cgroup_enable=memory", controllerProbe("memory")},
	{"swap accounting", []string{agent.ControlMemorySwap}, "--memory-swap; no swap by default", "boot with swapaccount=1, or turn swap off", findSwap},
	{"socket buffers", []string{agent.ControlSockets}, "what sockets hold beside --memory stays below a quarter of it", kernelRemedy("MEMCG_V1"), findSocketBuffers},
	{"pids controller", []string{agent.ControlPids}, "--pids-limit; a fork bomb ends at its limit", kernelRemedy("CGROUP_PIDS"), controllerProbe("pids")},
	{"cpu controller", []string{agent.ControlCPU}, "--cpus", kernelRemedy("CFS_BANDWIDTH"), controllerProbe("cpu")},
	{"cpuset controller", []string{agent.ControlCPUSet}, "--cpuset-cpus", kernelRemedy("CPUSETS"), controllerProbe("cpuset")},
	{"cpu accounting", []string{agent.ControlCPUTime}, "--cpu-time, of the whole tree", kernelRemedy("CGROUP_CPUACCT"), findAccounting},
	{"device rules", []string{agent.ControlDevices}, "no device but null, zero, full, random, urandom, tty", kernelRemedy("CGROUP_DEVICE or CGROUP_BPF"), findDevices},
	{"overlay", []string{agent.ControlDisk}, "copy on write over the host's own system", "modprobe overlay", fileSystemProbe("overlay")},
	{"ext4", []string{agent.ControlDisk}, "the bounded writable layer", "modprobe ext4", fileSystemProbe("ext4")},
	{"loop devices", []string{agent.ControlDisk}, "--disk", "modprobe loop; in a container --device /dev/loop-control --device-cgroup-rule 'b 7:* rw'", findLoop},
	{"mke2fs", []string{agent.ControlDisk}, "makes the writable layer's template", "apt-get install e2fsprogs", findMkfs},
	{"tmpfs", []string{agent.ControlShm}, "--shm-size, --tmpfs", kernelRemedy("TMPFS"), fileSystemProbe("tmpfs")},
	{"rlimits", []string{agent.ControlRlimits}, "--ulimit, up to clove's own hard limits", "raise the hard limits of the shell or unit that starts clove", findRlimits},
	{"timerfd", []string{agent.ControlWallClock}, "--timeout, held by clove-init on CLOCK_BOOTTIME", kernelRemedy("TIMERFD"), findTimerfd},
	{"time namespaces", []string{agent.ControlClockStart}, "clock_start of a suite (clove bench): monotonic clocks that begin at a fixed time", kernelRemedy("TIME_NS"), namespaceProbe("time")},
	{"output counting", []string{agent.ControlOutput}, "--output-limit, counted by clove itself", "", func(*probes) (string, string) { return "pipes", "" }},
}

// ask finds what is there, or why nothing is and what to do. A reason may carry a remedy of
// its own after a semicolon, which is more specific than the table's.
func (p probe) ask(h *probes) (found, missing, remedy string) {
	found, missing = p.find(h)
	if why, own, has := strings.Cut(missing, "; "); has {
		return found, why, own
	}
	return found, missing, p.remedy
}

func kernelRemedy(option string) string { return "use a kernel with CONFIG_" + option }

// mechanism implements prober: the control holds when every probe that it
// depends on found something.
func (h *probes) mechanism(control string) (how, why, remedy string) {
	for _, p := range probeTable {
		for _, name := range p.controls {
			if name != control {
				continue
			}
			found, missing, remedy := p.ask(h)
			if missing != "" {
				return "", p.name + ": " + missing, remedy
			}
			how = found
		}
	}
	if name, fixed := mechanismNames[control]; fixed {
		how = name
	}
	return how, "", ""
}

// mechanismNames are short names for records where the last probe's finding is
// not one.
var mechanismNames = map[string]string{
	agent.ControlNamespaces: "pid,mount,uts,ipc,cgroup,network,user",
	agent.ControlNetwork:    "netns",
	agent.ControlEgress:     "clove-gate",
	agent.ControlDisk:       "ext4-image",
	agent.ControlShm:        "tmpfs",
	agent.ControlRlimits:    "setrlimit",
	agent.ControlWallClock:  "clove-init",
	agent.ControlOutput:     "pipes",
	agent.ControlSeccomp:    "seccomp",
	agent.ControlExecute:    "mounts",
	agent.ControlRead:       "landlock",
	agent.ControlClockStart: "time namespace",
}

func findInitBinary(h *probes) (found, missing string) {
	if h.init == "" {
		return "", "not found beside clove"
	}
	return h.init, ""
}

func findGateBinary(h *probes) (found, missing string) {
	if path := besideInit(h.init, host.Program); h.init != "" && isProgram(path) {
		return path, ""
	}
	return "", "not found beside clove-init"
}

// findTransparent makes a whole namespace with rules: parts of nf_tables are modules, and
// only their use shows whether they load.
func findTransparent(*probes) (found, missing string) {
	if err := netns.Probe(); err != nil {
		return "", err.Error()
	}
	return "nftables, tproxy", ""
}

// namespaceProbe checks that the kernel was built with the namespace, and that the
// administrator has not set its number to 0, a common hardening.
func namespaceProbe(name string) func(*probes) (string, string) {
	return func(*probes) (found, missing string) {
		if _, err := os.Stat("/proc/self/ns/" + name); err != nil {
			return "", "the kernel has none"
		}
		limit, err := os.ReadFile("/proc/sys/user/max_" + name + "_namespaces")
		if err == nil && strings.TrimSpace(string(limit)) == "0" {
			return "", "user.max_" + name + "_namespaces is 0"
		}
		return "there", ""
	}
}

// findSeccomp looks for the action that the filters answer refused calls with, and for the one
// by which the supervisor sees them.
func findSeccomp(*probes) (found, missing string) {
	actions, err := os.ReadFile("/proc/sys/kernel/seccomp/actions_avail")
	if err != nil || !strings.Contains(string(actions), "errno") {
		return "", "the kernel filters nothing"
	}
	if !strings.Contains(string(actions), "user_notif") {
		return "seccomp; this kernel does not report refused calls (Linux 5.0 does)", ""
	}
	return "seccomp; refused calls are reported", ""
}

// findNoexec takes execution from a mount of its own, as the building of a root does.
func findNoexec(*probes) (found, missing string) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err == nil {
		defer unix.Close(fd)
		attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOEXEC}
		err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr)
	}
	if err != nil {
		return "", err.Error()
	}
	return "mount_setattr", ""
}

// fileSystemProbe looks into /proc/filesystems, which lists what is built in or loaded.
func fileSystemProbe(name string) func(*probes) (string, string) {
	return func(*probes) (found, missing string) {
		list, err := os.ReadFile("/proc/filesystems")
		if err != nil {
			return "", err.Error()
		}
		for _, line := range strings.Split(string(list), "\n") {
			if fields := strings.Fields(line); len(fields) > 0 && fields[len(fields)-1] == name {
				return name, ""
			}
		}
		// A module that is not loaded yet is loaded by the mount itself.
		if exec.Command("modprobe", "--dry-run", "--quiet", name).Run() == nil {
			return name + " (module)", ""
		}
		return "", "the kernel does not have it"
	}
}

// findLoop opens the control device. In a container the node may exist and the device
// cgroup forbid its use.
func findLoop(*probes) (found, missing string) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		// The device node may be missing while the driver is there (containers).
		if exec.Command("modprobe", "--quiet", "loop").Run() == nil {
			if control, err = os.OpenFile("/dev/loop-control", os.O_RDWR, 0); err == nil {
				control.Close()
				return "/dev/loop-control", ""
			}
		}
		return "", err.Error()
	}
	control.Close()
	return "/dev/loop-control", ""
}

func findMkfs(*probes) (found, missing string) {
	path, err := rootfs.MakerOfFileSystems()
	if err != nil {
		return "", "neither in PATH nor in /sbin"
	}
	return path, ""
}

func findTimerfd(*probes) (found, missing string) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC)
	if err != nil {
		return "", err.Error()
	}
	unix.Close(fd)
	return "CLOCK_BOOTTIME", ""
}
