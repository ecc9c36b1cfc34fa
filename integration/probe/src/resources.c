/* Attacks that use up time, space, descriptors and output. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

static double seconds(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int cmd_spin(int argc, char **argv)
{
	struct outcome out = {.ok = 1};
	if (argc != 2)
		usage("spin: for how many seconds of CPU?");
	double wanted = (double)number(argv[1], 600), began = seconds(CLOCK_MONOTONIC);
	while (seconds(CLOCK_PROCESS_CPUTIME_ID) < wanted)
		;
	note(&out, "%.3f s of CPU in %.3f s", seconds(CLOCK_PROCESS_CPUTIME_ID), seconds(CLOCK_MONOTONIC) - began);
	report(STDOUT_FILENO, "spin", &out);
	return 0;
}

/* The files stay: the caller owns the space that they fill. */
int cmd_diskfill(int argc, char **argv)
{
	static char block[1 << 20];
	struct outcome out = {0};
	char path[4096];
	if (argc != 3)
		usage("diskfill: which directory, and how many MiB?");
	long most = number(argv[2], 8192), written = 0;
	memset(block, 'x', sizeof(block)); /* not zeroes, which a file system may skip */
	snprintf(path, sizeof(path), "%s/fill", argv[1]);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	done(&out, fd);
	while (out.ok && written < most << 20) {
		ssize_t n = write(fd, block, sizeof(block));
		done(&out, n);
		written += n > 0 ? n : 0;
	}
	/* With delayed allocation the error may come only now. */
	if (out.ok)
		done(&out, fsync(fd));
	note(&out, "%ld of %ld bytes", written, most << 20);
	report(STDOUT_FILENO, "diskfill", &out);
	return 0;
}

int cmd_inodefill(int argc, char **argv)
{
	struct outcome out = {.ok = 1};
	char path[4096];
	if (argc != 3)
		usage("inodefill: which directory, and how many files?");
	long most = number(argv[2], 2000000), made = 0;
	for (; made < most; made++) {
		snprintf(path, sizeof(path), "%s/%ld", argv[1], made);
		int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		done(&out, fd);
		if (fd < 0)
			break;
		close(fd);
	}
	note(&out, "%ld of %ld files", made, most);
	report(STDOUT_FILENO, "inodefill", &out);
	return 0;
}

int cmd_fdexhaust(int argc, char **argv)
{
	struct outcome out = {.ok = 1};
	if (argc != 2)
		usage("fdexhaust: how many descriptors?");
	long most = number(argv[1], 2000000), made = 0;
	while (made < most) {
		int fd = dup(STDIN_FILENO);
		done(&out, fd);
		if (fd < 0)
			break;
		made++;
	}
	note(&out, "%ld of %ld descriptors", made, most);
	report(STDOUT_FILENO, "fdexhaust", &out);
	return 0;
}

/* flood writes to the standard output, so it reports on the standard error. */
int cmd_flood(int argc, char **argv)
{
	static char block[64 << 10];
	struct outcome out = {.ok = 1};
	if (argc != 2)
		usage("flood: how many bytes?");
	long most = number(argv[1], 8L << 30), written = 0;
	memset(block, 'x', sizeof(block));
	for (size_t i = 79; i < sizeof(block); i += 80)
		block[i] = '\n';
	while (written < most) {
		size_t left = (size_t)(most - written);
		ssize_t n = write(STDOUT_FILENO, block, left < sizeof(block) ? left : sizeof(block));
		done(&out, n);
		if (n < 0)
			break;
		written += n;
	}
	note(&out, "%ld of %ld bytes", written, most);
	report(STDERR_FILENO, "flood", &out);
	return 0;
}
