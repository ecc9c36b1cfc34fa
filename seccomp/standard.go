package seccomp

import (
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// standardRefusals are the calls that standard does not allow, docker's omissions included.
// A test checks that every call that libseccomp knows is either allowed or in this table.
var standardRefusals = []refusal{
	{group: "namespaces", reason: "its flags are behind a pointer, where a filter cannot look for new namespaces; programs fall back to clone",
		errno: uint(unix.ENOSYS), names: []string{"clone3"}},
	{group: "aio", reason: "its requests come out of fs.aio-max-nr, which all of the host shares; databases fall back to threads",
		errno: uint(unix.ENOSYS),
		names: []string{"io_setup", "io_destroy", "io_submit", "io_cancel", "io_getevents", "io_pgetevents"}},
	{group: "io_uring", reason: "io_uring makes system calls that no filter sees",
		names: []string{"io_uring_setup", "io_uring_enter", "io_uring_register"}},

	{group: "namespaces", reason: "an agent stays in its own namespaces",
		names: []string{"unshare", "setns", "sethostname", "setdomainname"}},
	{group: "mounts", reason: "an agent may not change mounts",
		names: []string{"mount", "umount", "umount2", "pivot_root", "chroot", "mount_setattr", "move_mount",
			"open_tree", "open_tree_attr", "fsopen", "fsconfig", "fsmount", "fspick"}},
	{group: "other-processes", reason: "an agent needs neither the descriptors of another process nor its part in memory reclaim, and kcmp compares addresses of the kernel",
		names: []string{"process_madvise", "pidfd_getfd", "kcmp"}},
	{group: "file-handles", reason: "a file handle opens a file without a check of directory permissions",
		names: []string{"open_by_handle_at", "name_to_handle_at"}},
	{group: "keyrings", reason: "keyrings are not in a namespace of their own",
		names: []string{"add_key", "request_key", "keyctl"}},
	{group: "kernel-programs", reason: "only the host may load programs into the kernel, or probe it",
		names: []string{"bpf", "perf_event_open", "lookup_dcookie", "syslog"}},
	{group: "userfaultfd", reason: "page faults handled in user space let an exploit pause the kernel at a chosen instruction",
		names: []string{"userfaultfd"}},
	{group: "secret-memory", reason: "it hides memory from the kernel itself, which no agent needs",
		names: []string{"memfd_secret"}},
	{group: "page-cache", reason: "it shows which pages of shared files other processes use",
		names: []string{"cachestat"}},
	{group: "fanotify", reason: "watching whole file systems needs a privilege that no agent has",
		names: []string{"fanotify_init", "fanotify_mark"}},
	{group: "segments", reason: "segments serve 16- and 32-bit code, which cannot make a system call here",
		names: []string{"modify_ldt", "vm86", "vm86old"}},

	{group: "kernel-modules", reason: "only the host may control the machine, its kernel and its modules",
		names: []string{"reboot", "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module",
			"create_module", "query_module", "get_kernel_syms", "iopl", "ioperm", "pciconfig_iobase",
			"pciconfig_read", "pciconfig_write"}},
	{group: "clock", reason: "only the host may set the clock", names: []string{"settimeofday", "stime", "clock_settime"}},
	{group: "accounting", reason: "only the host may configure swap, quotas and accounting",
		names: []string{"swapon", "swapoff", "quotactl", "quotactl_fd", "acct"}},
	{group: "numa", reason: "the host decides on which NUMA node memory is",
		names: []string{"mbind", "get_mempolicy", "set_mempolicy", "set_mempolicy_home_node", "migrate_pages", "move_pages"}},
	{group: "security-modules", reason: "security modules are configured by the host",
		names: []string{"lsm_get_self_attr", "lsm_set_self_attr", "lsm_list_modules"}},
	{group: "hangup", reason: "only the host may hang up a terminal", names: []string{"vhangup"}},
	{group: "obsolete", reason: "it is obsolete and no program of today calls it",
		names: []string{"_sysctl", "sysfs", "ustat", "uselib", "nfsservctl", "afs_syscall", "getpmsg", "putpmsg",
			"security", "tuxcall", "vserver", "bdflush", "break", "ftime", "gtty", "stty", "idle", "lock", "mpx",
			"prof", "profil", "ulimit", "nice", "olduname", "oldolduname", "epoll_ctl_old", "epoll_wait_old",
			"multiplexer", "oldwait4", "sgetmask", "ssetmask", "signal", "sigpending", "sigsuspend", "sigaction",
			"readdir", "oldstat", "oldfstat", "oldlstat"}},
	{group: "foreign", reason: "it exists only in tables of 32-bit or foreign machines, whose calls are not accepted",
		names: []string{"_llseek", "_newselect", "chown32", "fchown32", "lchown32", "clock_adjtime64",
			"clock_getres_time64", "clock_gettime64", "clock_nanosleep_time64", "fadvise64_64", "fcntl64",
			"fstat64", "fstatat64", "fstatfs64", "ftruncate64", "futex_time64", "getegid32", "geteuid32", "getgid32",
			"getgroups32", "getresgid32", "getresuid32", "getuid32", "io_pgetevents_time64", "ipc", "lstat64",
			"mmap2", "mq_timedreceive_time64", "mq_timedsend_time64", "ppoll_time64", "pselect6_time64", "recv",
			"recvmmsg_time64", "rt_sigtimedwait_time64", "sched_rr_get_interval_time64", "semtimedop_time64", "send",
			"sendfile64", "setfsgid32", "setfsuid32", "setgid32", "setgroups32", "setregid32", "setresgid32",
			"setresuid32", "setreuid32", "setuid32", "sigprocmask", "sigreturn", "socketcall", "stat64", "statfs64",
			"timer_gettime64", "timer_settime64", "timerfd_gettime64", "timerfd_settime64", "truncate64",
			"ugetrlimit", "utimensat_time64", "waitpid", "clock_settime64", "arm_fadvise64_64",
			"arm_sync_file_range", "sync_file_range2", "breakpoint", "cacheflush", "set_tls"}},
}

// newNamespaces are the flags of clone that make a namespace. CLONE_NEWTIME is not one of
// them: clone reads its bit as part of the exit signal.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
	unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP

// standardConditions are the calls that standard allows with some arguments only.
func standardConditions() []condition {
	return append(filterConditions(), []condition{
		{name: "clone", group: "namespaces",
			allowed: "processes and threads without a new namespace",
			reason:  "an agent stays in its own namespaces",
			accept:  [][]specs.LinuxSeccompArg{all(masked(0, newNamespaces, 0))}},
		{name: "socket", group: "sockets",
			allowed: "AF_UNIX, TCP, UDP and ping over AF_INET and AF_INET6, and the route protocol of AF_NETLINK",
			reason:  "other families and protocols are kernel code that agents have no use for, and some lead out of the network namespace",
			accept:  socketKinds(),
			// NETLINK_AUDIT fails as on a kernel without audit: on EPERM, useradd and
			// passwd fail, and with them packages that add a user.
			absent:      [][]specs.LinuxSeccompArg{all(equals(0, unix.AF_NETLINK), equals(2, unix.NETLINK_AUDIT))},
			absentErrno: unix.EPROTONOSUPPORT},
		{name: "socketpair", group: "sockets",
			allowed: "AF_UNIX",
			reason:  "no other family that an agent may use has pairs",
			accept:  oneOf(0, unix.AF_UNIX)},
		{name: "ioctl", group: "terminals",
			allowed: "every command but TIOCSTI, TIOCLINUX and TIOCSETD",
			reason:  "these type into a terminal as if its user did, or load a line discipline",
			accept:  except(1, unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSETD)},
		{name: "mknod", group: "devices",
			allowed: "plain files, FIFOs and sockets",
			reason:  "devices are given by the host, and 0:0 is overlayfs' mark for a deleted file, which needs no privilege",
			accept:  fileTypes(1)},
		{name: "mknodat", group: "devices",
			allowed: "plain files, FIFOs and sockets",
			reason:  "devices are given by the host, and 0:0 is overlayfs' mark for a deleted file, which needs no privilege",
			accept:  fileTypes(2)},
		{name: "renameat2", group: "devices",
			allowed: "everything but RENAME_WHITEOUT",
			reason:  "it leaves overlayfs' mark for a deleted file, which needs no privilege",
			accept:  [][]specs.LinuxSeccompArg{all(masked(4, unix.RENAME_WHITEOUT, 0))}},
		withoutHugePages("mmap", 3, unix.MAP_HUGETLB),
		withoutHugePages("memfd_create", 1, unix.MFD_HUGETLB),
		withoutHugePages("shmget", 2, shmHugeTLB),
		{name: "personality", group: "personality",
			allowed: "Linux itself, with or without the 2.6 version number, 32-bit machine name and randomised addresses, and reading the current value",
			reason:  "the rest makes data executable, maps address 0 or emulates other systems",
			// The five values that docker allows, and those without randomised addresses, which
			// debuggers and sanitizers give to what they start.
			accept: oneOf(0, readPersonality, 0, perLinux32, uname26, uname26|perLinux32,
				fixedAddresses, fixedAddresses|perLinux32, fixedAddresses|uname26, fixedAddresses|uname26|perLinux32)},
	}...)
}

// shmHugeTLB is SHM_HUGETLB of linux/shm.h.
const shmHugeTLB = 0o4000

// withoutHugePages allows a call unless its flags request pages from the host's huge page pool.
func withoutHugePages(name string, flags uint, hugeTLB uint64) condition {
	return condition{name: name, group: "huge-pages",
		allowed: "pages of ordinary size, and transparent huge ones",
		reason:  "the host reserves huge pages for other programs, and no memory limit counts them",
		accept:  [][]specs.LinuxSeccompArg{all(masked(flags, hugeTLB, 0))}}
}

// Values of personality(2), from linux/personality.h.
const (
	perLinux32      = 0x8
	uname26         = 0x20000
	fixedAddresses  = 0x40000 // ADDR_NO_RANDOMIZE
	readPersonality = 0xffffffff
)

// socketTypeMask is SOCK_TYPE_MASK of linux/net.h. The flags SOCK_CLOEXEC and SOCK_NONBLOCK
// are above it.
const socketTypeMask = 0xf

// socketKinds lists family, type and protocol. The family alone is not enough: the kernel
// loads modules for types and protocols too (DCCP, SCTP).
func socketKinds() [][]specs.LinuxSeccompArg {
	kind := func(domain uint32, kind uint64, protocol uint32) []specs.LinuxSeccompArg {
		return all(equals(0, domain), masked(1, socketTypeMask, kind), equals(2, protocol))
	}
	return [][]specs.LinuxSeccompArg{
		all(equals(0, unix.AF_UNIX)),
		kind(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_IP),
		kind(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_TCP),
		kind(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_IP),
		kind(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDP),
		kind(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP),
		kind(unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_IP),
		kind(unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_TCP),
		kind(unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_IP),
		kind(unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_UDP),
		kind(unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_ICMPV6),
		all(equals(0, unix.AF_NETLINK), equals(2, unix.NETLINK_ROUTE)),
	}
}

// fileTypes allows the types that mknod creates without privilege; 0 means a regular file.
// Modes with set-ID bits are refused: no program creates such a file with mknod.
func fileTypes(modeArgument uint) [][]specs.LinuxSeccompArg {
	var alternatives [][]specs.LinuxSeccompArg
	for _, kind := range []uint64{0, unix.S_IFREG, unix.S_IFIFO, unix.S_IFSOCK} {
		alternatives = append(alternatives, all(masked(modeArgument, unix.S_IFMT|setID, kind)))
	}
	return alternatives
}
