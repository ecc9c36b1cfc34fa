/* Attacks through files: the kernel's own files, devices, setuid programs, and a
 * name that changes while another process follows it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

static void by_read(const void *arg, struct outcome *out)
{
	char block[8192]; /* as much as a record of /dev/kmsg */
	ssize_t n = -1;
	int fd = open(arg, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	done(out, fd);
	if (out->ok) {
		n = read(fd, block, sizeof(block));
		if (n < 0 && errno == EISDIR)
			n = (ssize_t)syscall(SYS_getdents64, fd, block, sizeof(block));
		done(out, n);
	}
	if (out->ok && n == 0) { /* things are masked with an empty file */
		out->ok = 0;
		out->err = ENODATA;
	}
}

/* Opened for writing, and nothing written: the kernel checks at open. */
static void by_write(const void *arg, struct outcome *out)
{
	done(out, open(arg, O_WRONLY | O_NONBLOCK | O_CLOEXEC));
}

static int each(const char *probe, attempt_fn *run, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const struct variant one = {argv[i], run, argv[i]};
		attempt(probe, &one);
	}
	return 0;
}

int cmd_read(int argc, char **argv)
{
	return each("read", by_read, argc, argv);
}

int cmd_write(int argc, char **argv)
{
	return each("write", by_write, argc, argv);
}

static const char *directory;

struct node {
	unsigned long mode;
	unsigned major, minor;
};

static void by_mknod(const void *arg, struct outcome *out)
{
	const struct node *node = arg;
	char path[4096];
	snprintf(path, sizeof(path), "%s/node", directory);
	done(out, syscall(SYS_mknodat, AT_FDCWD, path, node->mode | 0600, makedev(node->major, node->minor)));
	if (!out->ok)
		return;
	/* Only the null device is opened, because opening others may have effects. */
	if (node->major == 1 && node->minor == 3) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		note(out, "made, and %s", fd < 0 ? "not opened" : "opened");
	}
	unlink(path);
}

/* Renaming with this flag leaves overlayfs' mark for a deleted file. */
static void by_rename(const void *arg, struct outcome *out)
{
	char from[4096], to[4096];
	(void)arg;
	snprintf(from, sizeof(from), "%s/from", directory);
	snprintf(to, sizeof(to), "%s/to", directory);
	int fd = open(from, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	done(out, fd);
	if (out->ok)
		done(out, syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 4 /* RENAME_WHITEOUT */));
	unlink(from);
	unlink(to);
}

#define NODE(...) by_mknod, &(const struct node){__VA_ARGS__}

static const struct variant nodes[] = {
	{"fifo", NODE(S_IFIFO, 0, 0)},
	{"null", NODE(S_IFCHR, 1, 3)},
	{"mem", NODE(S_IFCHR, 1, 1)},
	{"disk", NODE(S_IFBLK, 8, 0)},
	{"loop", NODE(S_IFBLK, 7, 0)},
	{"whiteout", NODE(S_IFCHR, 0, 0)},
	{"whiteout-by-rename", by_rename, NULL},
	{"null-high-bit", NODE(S_IFCHR | 1UL << 32, 1, 3)},
};

int cmd_mknod(int argc, char **argv)
{
	if (argc < 2)
		usage("mknod: in which directory?");
	directory = argv[1];
	return variants("mknod", nodes, COUNT(nodes), argc - 2, argv + 2);
}

/* ids prints this process's ids; ok if it became root. */
int cmd_ids(int argc, char **argv)
{
	struct outcome out = {.err = EPERM};
	uid_t real, effective, saved;
	(void)argc, (void)argv;
	getresuid(&real, &effective, &saved);
	out.ok = real != 0 && (effective == 0 || saved == 0);
	note(&out, "uid %u, effective %u, saved %u", real, effective, saved);
	report(STDOUT_FILENO, "ids", &out);
	return 0;
}

int cmd_setuid_exec(int argc, char **argv)
{
	struct outcome out = {0};
	if (argc != 2)
		usage("setuid-exec: which program?");
	execl(argv[1], argv[1], "ids", (char *)NULL);
	done(&out, -1);
	note(&out, "exec %s", argv[1]);
	report(STDOUT_FILENO, "ids", &out);
	return 0;
}

/* swap exchanges two names, such as a directory and a symbolic link, as fast as it
 * can: a process that checks the one and then uses the other follows the link. */
int cmd_swap(int argc, char **argv)
{
	struct outcome out = {.ok = 1};
	if (argc != 5)
		usage("swap: in which directory, which two names, for how long?");
	int dir = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	time_t end = time(NULL) + number(argv[4], 600);
	long swaps = 0;
	done(&out, dir);
	while (out.ok && time(NULL) < end) {
		done(&out, syscall(SYS_renameat2, dir, argv[2], dir, argv[3], 2 /* RENAME_EXCHANGE */));
		swaps += out.ok;
	}
	note(&out, "%ld times", swaps);
	report(STDOUT_FILENO, "swap", &out);
	return 0;
}

/* put writes a text into existing files, and the result into another file, because
 * the attacked file may be this program's own output. */
int cmd_put(int argc, char **argv)
{
	if (argc < 4)
		usage("put: where to report, which text, into which files?");
	int log = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	for (int i = 3; log >= 0 && i < argc; i++) {
		struct outcome out = {0};
		int fd = open(argv[i], O_WRONLY | O_CLOEXEC);
		done(&out, fd);
		if (out.ok)
			done(&out, write(fd, argv[2], strlen(argv[2])));
		note(&out, "%s", argv[i]);
		report(log, "put", &out);
		close(fd);
	}
	return log < 0 ? 3 : 0;
}
