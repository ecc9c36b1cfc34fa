package probe

import (
	"fmt"
	"slices"
)

// Attack is one attempt that must fail inside, under the standard profile, both for the
// agent and for root inside.
type Attack struct {
	Name string   // the name in the program's output
	Held []string // outcomes that show that the attack failed; none of them may be the control's
	// MayLack: the target may not exist outside either, on this kernel or
	// machine. Then there is no attack to compare.
	MayLack bool
	// MayFault: some hypervisors do not execute the instruction. Then the attack ends with
	// SIGSEGV or SIGILL outside too, whatever filter there is.
	MayFault bool
}

// missing reports whether this host cannot make the attack even outside a sandbox, where it ended
// with this outcome.
func (a Attack) missing(outside string) bool {
	return a.MayLack && (outside == "ENOENT" || outside == "ENXIO") ||
		a.MayFault && (outside == "SIGSEGV" || outside == "SIGILL")
}

// Command is one run of the program with the attacks that it attempts.
type Command struct {
	Args    []string
	Attacks []Attack
	Passes  []string // lines that must succeed inside: the sandbox is not just broken
}

// Problem compares a command's run outside with its run inside, and describes what is
// wrong, line by line. nil: every attack works outside and fails inside.
func (c Command) Problem(outside, inside map[string]Result) []string {
	var problems []string
	for _, a := range c.Attacks {
		out, in := outside[a.Name].Outcome(), inside[a.Name].Outcome()
		if a.missing(out) {
			continue
		}
		// The control: an attack that fails outside in the same way proves nothing
		// about the sandbox.
		if out == "" || slices.Contains(a.Held, out) {
			problems = append(problems, fmt.Sprintf("control: %s: outside %q", a.Name, out))
		}
		if !slices.Contains(a.Held, in) {
			problems = append(problems, fmt.Sprintf("%s: inside %q (%s), want one of %q", a.Name, in, inside[a.Name].Detail, a.Held))
		}
	}
	// A sandbox in which nothing works would hold every attack.
	for _, name := range c.Passes {
		for where, results := range map[string]map[string]Result{"outside": outside, "inside": inside} {
			if got := results[name].Outcome(); got != Succeeded {
				problems = append(problems, fmt.Sprintf("%s: %s %q, want it to work", name, where, got))
			}
		}
	}
	return problems
}

// LeftOut describes the attacks that this host cannot make, line by line. Problem does not judge them.
func (c Command) LeftOut(outside map[string]Result) []string {
	var lines []string
	for _, a := range c.Attacks {
		if out := outside[a.Name].Outcome(); a.missing(out) {
			lines = append(lines, fmt.Sprintf("%s is left out: it ends with %s on this host without any sandbox", a.Name, out))
		}
	}
	return lines
}

// held are attacks of one command that must all fail with the same error.
func held(outcome, command string, variants ...string) []Attack {
	var attacks []Attack
	for _, variant := range variants {
		attacks = append(attacks, Attack{Name: command + " " + variant, Held: []string{outcome}})
	}
	return attacks
}

// Commands returns the table. target is the process id that attacks on another process
// use: inside it is 1, outside a child of the test. scratch is a writable directory.
func Commands(target, scratch string) []Command {
	commands := kernelCommands()
	return append(commands,
		Command{Args: []string{"chroot", scratch}, Attacks: []Attack{{Name: "chroot", Held: []string{"EPERM"}}}},
		Command{Args: []string{"mknod", scratch},
			Attacks: held("EPERM", "mknod", "null", "mem", "disk", "loop", "whiteout", "whiteout-by-rename", "null-high-bit"),
			Passes:  []string{"mknod fifo"}},
		Command{Args: []string{"setns", target}, Attacks: refusals("setns", "mnt", "net", "pid", "user", "uts", "pidfd-net")},
		// Root inside may list the names in /proc/1/fd, signal PID 1, which ignores
		// signals, and raise its OOM score: these are not in the table.
		Command{Args: append([]string{"other", target}, otherWays...), Attacks: refusals("other", otherWays...)},
		Command{Args: append([]string{"read"}, secrets...), Attacks: paths("read", secrets)},
		Command{Args: append([]string{"write"}, levers...), Attacks: paths("write", levers)},
		Command{Args: []string{"fds"}},
	)
}

// kernelCommands are the attacks that the filter alone would stop.
func kernelCommands() []Command {
	return []Command{
		{Args: []string{"unshare"},
			Attacks: held("EPERM", "unshare", "user", "mnt", "net", "pid", "ipc", "uts", "time", "cgroup", "user+mnt+net")},
		{Args: []string{"clone"},
			Attacks: append(held("EPERM", "clone", "user", "mnt", "net", "pid", "ipc", "uts", "cgroup", "user-high-bit"),
				held("ENOSYS", "clone", "clone3-user", "clone3-time")...)},
		{Args: []string{"mount"},
			Attacks: held("EPERM", "mount", "tmpfs", "proc", "bind", "umount", "fsopen", "open_tree", "mount_setattr", "fspick")},
		{Args: []string{"kernel"},
			Attacks: append(held("EPERM", "kernel", "add_key", "session-keyring", "request_key", "io_uring", "bpf", "perf",
				"perf-everyone", "userfaultfd", "memfd_secret", "fanotify", "open_by_handle", "syslog", "sethostname",
				"init_module", "swapon", "acct", "quotactl", "personality", "iopl", "modify_ldt", "huge-file", "huge-pages"),
				held("ENOSYS", "kernel", "aio")...)},
		{Args: []string{"socket"},
			Attacks: append(audit, held("EPERM", "socket", "raw", "raw6", "packet", "alg", "vsock", "generic", "netfilter", "uevent",
				"sock-diag", "xfrm", "sctp", "dccp", "mptcp", "xdp", "bluetooth", "can", "tipc", "rds", "kcm", "smc", "key",
				"packet-high-bit", "alg-high-bit", "generic-high-bit", "raw-high-bit", "pair-tipc")...),
			Passes: []string{"socket unix", "socket tcp", "socket tcp6", "socket udp", "socket route", "socket tcp-high-bit", "socket pair-unix"}},
		{Args: []string{"filter"},
			Attacks: append(append(held("EPERM", "filter", "socket", "socket-high-bits", "reuseport", "bpf", "reuseport-bpf", "tcp-key", "tcp-key-ext"),
				held("EINVAL", "filter", "prctl", "prctl-high-bit")...), held("ENOSYS", "filter", "seccomp")...),
			Passes: []string{"filter ordinary"}},
		{Args: []string{"tty"},
			Attacks: held("EPERM", "tty", "sti", "sti-high-bit", "sti-top-bit", "linux", "linux-high-bit", "setd"),
			Passes:  []string{"tty size"}},
		{Args: []string{"abi", "int80", "int80-socket", "x32"},
			Attacks: append(faulting(held("SIGSYS", "abi", "int80", "int80-socket")), held("SIGSYS", "abi", "x32")...)},
	}
}

// faulting marks attacks by an instruction that not every host executes.
func faulting(attacks []Attack) []Attack {
	for i := range attacks {
		attacks[i].MayFault = true
	}
	return attacks
}

// audit sockets fail as on a kernel without audit: with EPERM, programs that add users
// would stop.
var audit = []Attack{{Name: "socket audit", Held: []string{"EPROTONOSUPPORT", "EPERM"}}}

// refusals fail by the filter or by the file system's permissions, whichever the kernel
// checks first.
func refusals(command string, variants ...string) []Attack {
	var attacks []Attack
	for _, variant := range variants {
		attacks = append(attacks, Attack{Name: command + " " + variant, Held: []string{"EPERM", "EACCES"}})
	}
	return attacks
}

// paths are attacks on files. Inside, a file is refused, hidden, replaced by an empty
// one, or read-only.
func paths(command string, names []string) []Attack {
	var attacks []Attack
	for _, name := range names {
		attacks = append(attacks, Attack{Name: command + " " + name, MayLack: true,
			Held: []string{"EACCES", "EPERM", "ENOENT", "ENODATA", "EROFS"}})
	}
	return attacks
}

// otherWays are the attacks on another process. They fail for root inside as well.
var otherWays = []string{"ptrace", "vm-read", "vm-write", "pidfd-getfd", "prlimit", "madvise", "exe-write", "mem-write", "environ", "root", "cwd", "maps"}

// secrets are files that reveal something about the host or other agents.
var secrets = []string{
	"/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sched_debug", "/proc/interrupts", "/proc/scsi",
	"/sys/firmware", "/sys/kernel/debug", "/sys/kernel/security", "/sys/kernel/tracing",
	"/sys/devices/virtual/powercap", "/dev/mem", "/dev/kmsg", "/dev/port", "/boot",
}

// levers are files that change the host.
var levers = []string{
	"/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hostname",
	"/proc/sys/kernel/ns_last_pid", "/proc/sys/vm/drop_caches", "/proc/sys/vm/overcommit_memory",
	"/proc/pressure/io", "/proc/sys/net/ipv4/ip_forward", "/proc/sys/fs/binfmt_misc/register", "/proc/irq/default_smp_affinity",
	"/sys/kernel/uevent_helper", "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/power/state",
	"/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/pids/cgroup.procs",
	"/sys/fs/cgroup/unified/cgroup.procs", "/dev/mem", "/dev/kmsg", "/dev/fuse", "/dev/net/tun", "/dev/loop-control", "/dev/kvm",
}
