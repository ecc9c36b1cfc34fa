package seccomp

import "golang.org/x/sys/unix"

// strictRefusals are what strict removes from standard. It is for programs that compute on
// files: interpreters, compilers, archivers and shell tools work, with threads, pipes, ptys
// and local sockets. Programs that use IP or System V or POSIX IPC (PostgreSQL) do not.
var strictRefusals = []refusal{
	{group: "shared-ipc", reason: "message queues and shared segments outlive processes, and are the usual way to shape the kernel's heap",
		names: []string{"msgget", "msgsnd", "msgrcv", "msgctl", "semget", "semop", "semtimedop", "semctl",
			"shmget", "shmat", "shmdt", "shmctl", "mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive",
			"mq_notify", "mq_getsetattr"}},
	{group: "memory-files", reason: "code that runs should be a file that can be seen", names: []string{"memfd_create"}},
	{group: "shared-pages", reason: "pages that pipes share with files have let exploits write read-only files",
		names: []string{"vmsplice", "tee"}},
	{group: "debuggers", reason: "a program that computes needs no debugger, and tracing is much code of the kernel",
		names: []string{"ptrace", "process_vm_readv", "process_vm_writev"}},
	{group: "personality", reason: "no program needs another personality", names: []string{"personality"}},
	{group: "mount-table", reason: "the mount table is in /proc for those who must know", names: []string{"statmount", "listmount"}},
	{group: "remapped-files", reason: "the kernel only emulates it for old programs", names: []string{"remap_file_pages"}},
	{group: "host-sync", reason: "it writes back every file system of the host; syncfs and fsync do it for the agent's own",
		names: []string{"sync"}},
	{group: "scheduling", reason: "the agent's cgroup decides its share of processors and disks",
		names: []string{"sched_setattr", "sched_setparam", "sched_setscheduler", "ioprio_set"}},
	{group: "clock", reason: "the state of the host's clock discipline is its own", names: []string{"adjtimex", "clock_adjtime"}},
}

// strictConditions narrow those of standard.
func strictConditions() []condition {
	return []condition{
		{name: "socket", group: "sockets",
			allowed: "AF_UNIX",
			reason:  "a strict agent has no network, whatever its network namespace holds",
			accept:  oneOf(0, unix.AF_UNIX)},
		{name: "ioctl", group: "drivers",
			allowed: "terminals, pseudo-terminals, pipes, descriptor flags and copying by reference",
			reason:  "every other command reaches code of a driver or file system",
			accept:  oneOf(1, strictIoctls...)},
	}
}

// strictIoctls are those that C libraries, shells, interpreters and cp use.
var strictIoctls = []uint32{
	unix.TCGETS, unix.TCSETS, unix.TCSETSW, unix.TCSETSF, // isatty, tcsetattr
	unix.TCGETS2, unix.TCSETS2, unix.TCSETSW2, unix.TCSETSF2, // the same, glibc 2.42 and newer
	unix.TCSBRK, unix.TCSBRKP, unix.TCXONC, unix.TCFLSH, // tcdrain, tcsendbreak, tcflow, tcflush
	unix.TIOCGWINSZ, unix.TIOCSWINSZ, unix.TIOCGPGRP, unix.TIOCSPGRP, unix.TIOCGSID, // job control
	unix.TIOCSCTTY, unix.TIOCNOTTY, // clove-init and daemons take and drop a terminal
	unix.TIOCGPTN, unix.TIOCSPTLCK, unix.TIOCGPTPEER, // openpty
	unix.TIOCINQ, unix.TIOCOUTQ, fionbio, fioasync, fionclex, fioclex, // TIOCINQ is FIONREAD
	unix.FS_IOC_GETFLAGS, unix.FICLONE, unix.FICLONERANGE,
}

// Commands on any descriptor, from asm-generic/ioctls.h.
const (
	fionbio  = 0x5421
	fionclex = 0x5450
	fioclex  = 0x5451
	fioasync = 0x5452
)
