/* What a process sees of its environment, as lines of a name, a tab and a text. A
 * test compares two environments by them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "probe.h"

extern char **environ;

/* say writes one line; characters that would end the line are written as numbers. */
static void say(const char *name, const char *text)
{
	printf("%s\t", name);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		if (c < 0x20 || c == 0x7f)
			printf("\\x%02x", c);
		else
			putchar(c);
	}
	putchar('\n');
}

static void say_error(const char *name)
{
	say(name, strerrorname_np(errno) ?: "?");
}

static void lines(const char *path)
{
	char *line = NULL;
	size_t room = 0;
	FILE *file = fopen(path, "re");
	if (!file) {
		say_error(path);
		return;
	}
	for (ssize_t n; (n = getline(&line, &room, file)) >= 0;) {
		if (n && line[n - 1] == '\n')
			line[n - 1] = 0;
		say(path, line);
	}
	free(line);
	fclose(file);
}

static void node(const char *path)
{
	struct stat s;
	char text[512], target[256] = "";
	if (lstat(path, &s)) {
		say_error(path);
		return;
	}
	if (S_ISLNK(s.st_mode) && readlink(path, target, sizeof(target) - 1) < 0)
		snprintf(target, sizeof(target), "?");
	snprintf(text, sizeof(text), "node %o %u:%u %u:%u %s", s.st_mode, s.st_uid, s.st_gid, major(s.st_rdev), minor(s.st_rdev), target);
	say(path, text);
}

/* access_of returns the result of opening for reading and for writing. It writes nothing. */
static void access_of(const char *path)
{
	char text[128] = "";
	struct stat s = {0};
	node(path);
	if (!stat(path, &s) && S_ISFIFO(s.st_mode)) /* it may be this program's own output */
		return;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n < 0)
		snprintf(text, sizeof(text), "%s %s", fd < 0 ? "open" : "read", strerrorname_np(errno) ?: "?");
	else if (!fstat(fd, &s) && S_ISCHR(s.st_mode)) /* some never read the same twice */
		snprintf(text, sizeof(text), "%zd bytes", n);
	if (fd >= 0)
		close(fd);
	say(path, text);
	fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	snprintf(text, sizeof(text), "writable %s", fd < 0 ? strerrorname_np(errno) ?: "?" : "yes");
	say(path, text);
	if (fd >= 0)
		close(fd);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strverscmp((*a)->d_name, (*b)->d_name);
}

/* each calls a function for every entry of a folder, in order. */
static void each(const char *folder, void (*call)(const char *))
{
	struct dirent **entries;
	char path[1024];
	int count = scandir(folder, &entries, NULL, by_name);
	if (count < 0)
		say_error(folder);
	for (int i = 0; i < count; i++) {
		if (strcmp(entries[i]->d_name, ".") && strcmp(entries[i]->d_name, "..")) {
			snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
			call(path);
		}
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
}

static void link_of(const char *path)
{
	char target[512] = "";
	if (readlink(path, target, sizeof(target) - 1) >= 0) /* scandir has closed its own descriptor */
		say(path, target);
}

static void identity(void)
{
	char text[1024];
	struct utsname uts;
	struct statvfs root = {0};
	uname(&uts);
	statvfs("/", &root);
	snprintf(text, sizeof(text), "%s %s %s", uts.nodename, uts.domainname, uts.machine);
	say("uname", text);
	snprintf(text, sizeof(text), "pid %d, parent %d, session %d, group %d, tty %d%d%d", getpid(), getppid(), getsid(0), getpgrp(),
		 isatty(0), isatty(1), isatty(2));
	say("process", text);
	snprintf(text, sizeof(text), "nice %d, policy %d, io %ld, root's flags %lx, dumpable %d, securebits %x, umask %o, keyring %d",
		 getpriority(PRIO_PROCESS, 0), sched_getscheduler(0), syscall(SYS_ioprio_get, 1, 0), root.f_flag,
		 prctl(PR_GET_DUMPABLE), prctl(PR_GET_SECUREBITS), umask(0), syscall(SYS_keyctl, 0, -3, 0) > 0);
	say("attributes", text);
	say("cwd", getcwd(text, sizeof(text)) ?: strerrorname_np(errno));
}

int cmd_world(int argc, char **argv)
{
	static const char *const files[] = {"/proc/self/status", "/proc/self/mountinfo", "/proc/self/limits", "/proc/self/cgroup",
					    "/proc/self/uid_map", "/proc/self/gid_map", "/proc/self/setgroups", "/proc/self/oom_score_adj",
					    "/proc/self/timens_offsets", "/proc/self/personality", "/proc/net/dev"};
	identity();
	for (size_t i = 0; i < COUNT(files); i++)
		lines(files[i]);
	each("/proc/self/fd", link_of);
	each("/proc/self/ns", link_of);
	each("/dev", access_of);
	each("/", node);
	for (char **e = environ; *e; e++)
		say("env", *e);
	for (int i = 1; i < argc; i++)
		access_of(argv[i]);
	say("end", "");
	fflush(stdout);
	/* The process that started this one inspects it from outside, and then closes its input. */
	char byte;
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
