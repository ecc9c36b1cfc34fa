package seccomp

import (
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// minimalAllowances are all that minimal allows: one program that reads and writes files,
// computes with threads, and ends. They are chosen for CPython: it starts, imports, computes
// and ends with these.
var minimalAllowances = []allowance{
	{group: "descriptors", reason: "open files are read, written and closed",
		names: []string{"read", "readv", "pread64", "preadv", "preadv2", "write", "writev", "pwrite64", "pwritev", "pwritev2",
			"lseek", "close", "close_range", "dup", "dup2", "dup3", "fcntl", "ioctl", "flock", "sendfile", "copy_file_range"}},
	{group: "files", reason: "a computation opens files, and keeps what it writes",
		names: []string{"open", "openat", "openat2", "creat", "fsync", "fdatasync", "fadvise64", "truncate", "ftruncate", "fallocate", "umask"}},
	{group: "metadata", reason: "the import of a module looks at files and directories",
		names: []string{"stat", "fstat", "lstat", "newfstatat", "statx", "statfs", "fstatfs", "access", "faccessat", "faccessat2",
			"readlink", "readlinkat", "getdents", "getdents64", "getcwd", "chdir", "fchdir",
			"getxattr", "lgetxattr", "fgetxattr", "listxattr", "llistxattr", "flistxattr"}},
	{group: "directories", reason: "temporary files come and go",
		names: []string{"mkdir", "mkdirat", "rmdir", "unlink", "unlinkat", "rename", "renameat", "renameat2"}},
	{group: "memory", reason: "the interpreter and its libraries map memory and files",
		names: []string{"brk", "mmap", "munmap", "mprotect", "mremap", "madvise", "msync", "mincore"}},
	{group: "threads", reason: "numeric libraries compute on all processors",
		names: []string{"clone", "futex", "set_robust_list", "get_robust_list", "set_tid_address", "rseq", "gettid", "getcpu",
			"sched_yield", "sched_getaffinity", "arch_prctl", "prctl", "exit"}},
	{group: "program", reason: "the filter is loaded before the agent's program is executed; one program can replace another, but not start one beside it",
		names: []string{"execve", "exit_group"}},
	{group: "signals", reason: "a program handles its signals, and abort(3) sends one",
		names: []string{"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "restart_syscall", "kill", "tgkill"}},
	{group: "time", reason: "a program reads the clock and sleeps",
		names: []string{"clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "time",
			"select", "pselect6", "poll", "ppoll"}},
	{group: "facts", reason: "a program learns who and where it is, and what it may use",
		names: []string{"getpid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getresuid", "getresgid", "getgroups",
			"getpgrp", "getpgid", "getsid", "uname", "sysinfo", "getrandom", "getrusage", "times", "getrlimit", "setrlimit", "prlimit64"}},
}

// minimalRefusals are what strict allows and minimal does not. They have a rule each, with the
// default errno, because the largest number that a profile names decides where ENOSYS begins:
// without them minimal would answer EPERM or ENOSYS where strict does not.
var minimalRefusals = byRule([]refusal{
	{group: "processes", reason: "a computation is one process; threads are allowed",
		names: []string{"fork", "vfork", "execveat", "wait4", "waitid", "pidfd_open", "pidfd_send_signal", "process_mrelease"}},
	{group: "sockets", reason: "a computation has no peer, not even over a socket that it was given",
		names: []string{"socket", "socketpair", "bind", "connect", "listen", "accept", "accept4", "getsockname", "getpeername",
			"getsockopt", "setsockopt", "sendto", "sendmsg", "sendmmsg", "recvfrom", "recvmsg", "recvmmsg", "shutdown"}},
	{group: "pipes", reason: "without other processes a pipe has no other end",
		names: []string{"pipe", "pipe2", "splice"}},
	{group: "events", reason: "poll and select wait for the few descriptors that there are",
		names: []string{"epoll_create", "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2",
			"eventfd", "eventfd2", "signalfd", "signalfd4"}},
	{group: "watches", reason: "a computation reads files, and waits for no change of them",
		names: []string{"inotify_init", "inotify_init1", "inotify_add_watch", "inotify_rm_watch"}},
	{group: "timers", reason: "sleeping needs none, and each is memory of the kernel",
		names: []string{"alarm", "getitimer", "setitimer", "timer_create", "timer_delete", "timer_getoverrun", "timer_gettime",
			"timer_settime", "timerfd_create", "timerfd_gettime", "timerfd_settime"}},
	{group: "other-signals", reason: "kill and tgkill are what abort(3) and raise(3) send with",
		names: []string{"tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "rt_sigpending", "rt_sigsuspend", "rt_sigtimedwait", "pause"}},
	{group: "links", reason: "other names for files have led programs to files that were not meant",
		names: []string{"link", "linkat", "symlink", "symlinkat"}},
	{group: "devices", reason: "a computation makes plain files only, with open", names: []string{"mknod", "mknodat"}},
	{group: "attributes", reason: "a new file gets its mode from open; nothing else about it need change",
		names: []string{"chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat",
			"utime", "utimes", "futimesat", "utimensat",
			"setxattr", "lsetxattr", "fsetxattr", "setxattrat", "removexattr", "lremovexattr", "fremovexattr", "removexattrat",
			"getxattrat", "listxattrat"}},
	{group: "identity", reason: "the agent's ids and capabilities are set before it executes",
		names: []string{"capget", "capset", "setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setfsuid",
			"setfsgid", "setgroups"}},
	{group: "sessions", reason: "one process needs no group and no session of its own",
		names: []string{"setsid", "setpgid"}},
	{group: "scheduling", reason: "the agent's cgroup decides its share of processors",
		names: []string{"getpriority", "setpriority", "ioprio_get", "sched_setaffinity", "sched_getattr", "sched_getparam",
			"sched_getscheduler", "sched_get_priority_max", "sched_get_priority_min", "sched_rr_get_interval"}},
	{group: "locked-memory", reason: "memory that cannot be swapped is the host's loss",
		names: []string{"mlock", "mlock2", "mlockall", "munlock", "munlockall"}},
	{group: "rare-memory", reason: "C libraries and CPython work without",
		names: []string{"map_shadow_stack", "mseal", "pkey_alloc", "pkey_free", "pkey_mprotect", "membarrier",
			"get_thread_area", "set_thread_area", "riscv_hwprobe", "uretprobe"}},
	{group: "rare-waits", reason: "C libraries wait with futex",
		names: []string{"futex_wait", "futex_wake", "futex_waitv", "futex_requeue"}},
	{group: "landlock", reason: "there is no child to confine further",
		names: []string{"landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"}},
	{group: "rare-files", reason: "fsync and fdatasync write back what a program has written",
		names: []string{"syncfs", "sync_file_range", "readahead"}},
})

// byRule gives rows the default errno as their own.
func byRule(rows []refusal) []refusal {
	for i := range rows {
		rows[i].errno = uint(unix.EPERM)
	}
	return rows
}

// minimalConditions narrow those of strict.
func minimalConditions() []condition {
	return []condition{
		{name: "clone", group: "processes",
			allowed: "threads",
			reason:  "a computation is one process",
			accept:  [][]specs.LinuxSeccompArg{all(masked(0, newNamespaces|unix.CLONE_THREAD, unix.CLONE_THREAD))}},
		{name: "ioctl", group: "drivers",
			allowed: "asking whether a descriptor is a terminal and how large it is, and close-on-exec",
			reason:  "every other command reaches code of a driver or file system",
			accept:  oneOf(1, unix.TCGETS, unix.TCGETS2, unix.TIOCGWINSZ, fioclex, fionclex)},
		{name: "fcntl", group: "descriptors",
			allowed: "duplicates, flags and locks of descriptors",
			reason:  "leases, owners of signals, sizes of pipes and seals serve several processes",
			accept: oneOf(1, unix.F_DUPFD, unix.F_DUPFD_CLOEXEC, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL,
				unix.F_GETLK, unix.F_SETLK, unix.F_SETLKW, unix.F_OFD_GETLK, unix.F_OFD_SETLK, unix.F_OFD_SETLKW)},
		{name: "prctl", group: "process-settings",
			allowed: "names of threads and of memory",
			reason:  "the sandbox has made every other setting",
			accept:  oneOf(0, unix.PR_SET_NAME, unix.PR_GET_NAME, unix.PR_SET_VMA),
			absent:  oneOf(0, unix.PR_SET_SECCOMP), absentErrno: unix.EINVAL},
	}
}

// minimal is narrower than strict in every row: nothing that strict refuses is in its tables.
func minimal(strict builtin) builtin {
	return builtin{
		name:       Minimal,
		allowances: minimalAllowances,
		refusals:   slices.Concat(strict.refusals, minimalRefusals),
		conditions: narrow(strict.conditions, minimalConditions(), minimalRefusals),
	}
}
