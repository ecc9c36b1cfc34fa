/* Attacks on another process, such as PID 1 of the sandbox. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "probe.h"

static pid_t target;

/* PTRACE_SEIZE does not stop the process, and ends with this one. */
static void by_ptrace(const void *arg, struct outcome *out)
{
	(void)arg;
	done(out, ptrace(PTRACE_SEIZE, target, NULL, NULL));
}

/* first_mapping returns where the target's program is mapped, if it can be known. */
static unsigned long first_mapping(void)
{
	char path[64];
	unsigned long address = 0x400000;
	snprintf(path, sizeof(path), "/proc/%d/maps", target);
	FILE *maps = fopen(path, "re");
	if (maps && fscanf(maps, "%lx-", &address) != 1)
		address = 0x400000;
	if (maps)
		fclose(maps);
	return address;
}

static void by_vm_read(const void *arg, struct outcome *out)
{
	char byte;
	struct iovec here = {&byte, 1}, there = {(void *)first_mapping(), 1};
	(void)arg;
	done(out, process_vm_readv(target, &here, 1, &there, 1, 0));
}

/* Writes nothing: the permission is checked, the memory does not change. */
static void by_vm_write(const void *arg, struct outcome *out)
{
	char byte = 0;
	struct iovec here = {&byte, 1}, there = {NULL, 1};
	(void)arg;
	done(out, process_vm_writev(target, &here, 1, &there, 1, 0));
	if (!out->ok && out->err == EFAULT) {
		out->ok = 1;
		note(out, "permitted; there is nothing at address 0");
	}
}

static void by_pidfd_getfd(const void *arg, struct outcome *out)
{
	(void)arg;
	int pidfd = (int)syscall(SYS_pidfd_open, target, 0);
	done(out, pidfd);
	if (out->ok)
		done(out, syscall(SYS_pidfd_getfd, pidfd, 0, 0));
}

static void by_open(const void *arg, struct outcome *out)
{
	char path[64], link[256] = "";
	const char *file = arg;
	int flags = *file == 'w' ? O_WRONLY : O_RDONLY; /* by the first letter */
	snprintf(path, sizeof(path), "/proc/%d/%s", target, file + 2);
	int fd = open(path, flags | O_CLOEXEC);
	done(out, fd);
	if (out->ok && flags == O_RDONLY) {
		ssize_t n = read(fd, link, sizeof(link) - 1);
		if (n < 0 && errno == EISDIR)
			n = (ssize_t)syscall(SYS_getdents64, fd, link, sizeof(link));
		done(out, n);
	}
	note(out, "%s", path);
}

static void by_prlimit(const void *arg, struct outcome *out)
{
	struct rlimit old;
	(void)arg;
	/* Reading another process's limits needs the same permission as setting them. */
	done(out, prlimit(target, RLIMIT_NOFILE, NULL, &old));
}

static void by_madvise(const void *arg, struct outcome *out)
{
	struct iovec there = {(void *)first_mapping(), 4096};
	(void)arg;
	int pidfd = (int)syscall(SYS_pidfd_open, target, 0);
	done(out, syscall(SYS_process_madvise, pidfd, &there, 1, 20 /* MADV_COLD */, 0));
}

static const struct variant ways[] = {
	{"ptrace", by_ptrace, NULL},	 {"vm-read", by_vm_read, NULL},	     {"vm-write", by_vm_write, NULL},
	{"pidfd-getfd", by_pidfd_getfd, NULL}, {"prlimit", by_prlimit, NULL}, {"madvise", by_madvise, NULL},
	{"exe-write", by_open, "w:exe"}, {"mem-write", by_open, "w:mem"},   {"environ", by_open, "r:environ"},
	{"root", by_open, "r:root/"},	 {"cwd", by_open, "r:cwd/"},	     {"fd", by_open, "r:fd/"},
	{"maps", by_open, "r:maps"},	 {"oom-write", by_open, "w:oom_score_adj"},
};

int cmd_other(int argc, char **argv)
{
	if (argc < 2)
		usage("other: which process?");
	target = (pid_t)number(argv[1], 1 << 22);
	return variants("other", ways, COUNT(ways), argc - 2, argv + 2);
}

/* Signal 0 only checks the permission. */
int cmd_kill(int argc, char **argv)
{
	struct outcome out = {0};
	if (argc != 3)
		usage("kill: which process, by which signal?");
	done(&out, kill((pid_t)number(argv[1], 1 << 22), (int)number(argv[2], 64)));
	report(STDOUT_FILENO, "kill", &out);
	return 0;
}

/* fds lists the descriptors that this program was started with, except 0 to 2. */
int cmd_fds(int argc, char **argv)
{
	struct outcome out = {.err = ENOENT};
	size_t used = 0;
	(void)argc, (void)argv;
	DIR *dir = opendir("/proc/self/fd");
	if (!dir) {
		done(&out, -1);
		note(&out, "open /proc/self/fd");
	}
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		char path[300], link[200] = "";
		int fd = atoi(entry->d_name);
		if (fd <= 2 || fd == dirfd(dir))
			continue; /* atoi of "." and ".." is 0, too */
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (readlink(path, link, sizeof(link) - 1) < 0)
			strcpy(link, "?");
		out.ok = 1;
		if (used + sizeof(link) + 16 < sizeof(out.detail))
			used += (size_t)sprintf(out.detail + used, "%s%d=%s", used ? " " : "", fd, link);
	}
	report(STDOUT_FILENO, "fds", &out);
	return 0;
}
