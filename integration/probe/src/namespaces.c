/* Attacks that make or enter namespaces. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

static const uint64_t user = CLONE_NEWUSER, mnt = CLONE_NEWNS, net = CLONE_NEWNET, pid = CLONE_NEWPID,
		      ipc = CLONE_NEWIPC, uts = CLONE_NEWUTS, cgroup = CLONE_NEWCGROUP, timens = CLONE_NEWTIME,
		      all = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET;

static void by_unshare(const void *arg, struct outcome *out)
{
	done(out, syscall(SYS_unshare, *(const uint64_t *)arg));
}

static const struct variant unshares[] = {
	{"user", by_unshare, &user}, {"mnt", by_unshare, &mnt},	      {"net", by_unshare, &net},
	{"pid", by_unshare, &pid},   {"ipc", by_unshare, &ipc},	      {"uts", by_unshare, &uts},
	{"time", by_unshare, &timens}, {"cgroup", by_unshare, &cgroup}, {"user+mnt+net", by_unshare, &all},
};

int cmd_unshare(int argc, char **argv)
{
	return variants("unshare", unshares, COUNT(unshares), argc - 1, argv + 1);
}

/* reap takes the result of a clone; in the child it exits. */
static void reap(struct outcome *out, long child)
{
	if (child == 0)
		_exit(0);
	done(out, child);
	if (child > 0)
		waitpid((pid_t)child, NULL, 0);
}

static void by_clone(const void *arg, struct outcome *out)
{
	reap(out, syscall(SYS_clone, *(const uint64_t *)arg | SIGCHLD, 0, 0, 0, 0));
}

/* The kernel drops bit 32 of clone's flags, and a filter might not. */
static void by_clone_high(const void *arg, struct outcome *out)
{
	reap(out, syscall(SYS_clone, *(const uint64_t *)arg | SIGCHLD | 1UL << 32, 0, 0, 0, 0));
}

static void by_clone3(const void *arg, struct outcome *out)
{
	struct clone_args args = {.flags = *(const uint64_t *)arg, .exit_signal = SIGCHLD};
	reap(out, syscall(SYS_clone3, &args, sizeof(args)));
}

static const struct variant clones[] = {
	{"user", by_clone, &user}, {"mnt", by_clone, &mnt}, {"net", by_clone, &net},
	{"pid", by_clone, &pid},   {"ipc", by_clone, &ipc}, {"uts", by_clone, &uts},
	{"cgroup", by_clone, &cgroup}, {"user-high-bit", by_clone_high, &user},
	{"clone3-user", by_clone3, &user}, {"clone3-time", by_clone3, &timens},
};

int cmd_clone(int argc, char **argv)
{
	return variants("clone", clones, COUNT(clones), argc - 1, argv + 1);
}

static pid_t target;

static void by_setns(const void *arg, struct outcome *out)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/ns/%s", target, (const char *)arg);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	done(out, fd);
	if (!out->ok) {
		note(out, "open %s", path);
		return;
	}
	done(out, setns(fd, 0));
}

static void by_pidfd(const void *arg, struct outcome *out)
{
	int fd = (int)syscall(SYS_pidfd_open, target, 0);
	done(out, fd);
	if (out->ok)
		done(out, setns(fd, (int)*(const uint64_t *)arg));
}

static const struct variant entries[] = {
	{"mnt", by_setns, "mnt"}, {"net", by_setns, "net"}, {"pid", by_setns, "pid"}, {"user", by_setns, "user"},
	{"uts", by_setns, "uts"}, {"pidfd-net", by_pidfd, &net},
};

int cmd_setns(int argc, char **argv)
{
	if (argc < 2)
		usage("setns: of which process?");
	target = (pid_t)number(argv[1], 1 << 22);
	return variants("setns", entries, COUNT(entries), argc - 2, argv + 2);
}
