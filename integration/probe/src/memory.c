/* Attacks that use up memory, each with another kind of page. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

#define MIB (1L << 20)

/* reached is how many bytes were touched; the parent reads it after the death of
 * the process that touched them. */
static atomic_long *reached;

static void touch(char *memory, long bytes)
{
	for (long at = 0; at < bytes; at += 4096) {
		memory[at] = 1;
		atomic_fetch_add(reached, 4096);
	}
}

static void by_malloc(const void *arg, struct outcome *out)
{
	long bytes = *(const long *)arg;
	char *memory = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	done(out, memory == MAP_FAILED ? -1 : 0);
	if (out->ok)
		touch(memory, bytes);
}

/* by_fork divides the size between eight processes that live at the same time. */
static void by_fork(const void *arg, struct outcome *out)
{
	long share = *(const long *)arg / 8;
	int ends[2], status, children = 0;
	char byte;
	done(out, pipe(ends));
	for (; out->ok && children < 8; children++) {
		pid_t child = fork();
		done(out, child);
		if (child)
			continue;
		close(ends[1]);
		by_malloc(&share, out);
		_exit(read(ends[0], &byte, 1) != 0); /* wait until all have their share */
	}
	/* It is over when the count stops growing or all processes have died. */
	while (out->ok && atomic_load(reached) < share / 4096 * 4096 * children) {
		if (waitpid(-1, &status, WNOHANG) > 0) {
			out->ok = 0;
			out->err = ENOMEM;
			note(out, "a child was killed");
		}
		usleep(1000);
	}
	close(ends[1]);
	while (wait(&status) > 0)
		;
}

static void by_memfd(const void *arg, struct outcome *out)
{
	static char block[MIB];
	long bytes = *(const long *)arg;
	int fd = memfd_create("probe", MFD_CLOEXEC);
	done(out, fd);
	memset(block, 'x', sizeof(block));
	for (long at = 0; out->ok && at < bytes; at += MIB) {
		done(out, write(fd, block, MIB));
		if (out->ok)
			atomic_fetch_add(reached, MIB);
	}
}

static void by_sysv(const void *arg, struct outcome *out)
{
	long bytes = *(const long *)arg;
	int id = shmget(IPC_PRIVATE, (size_t)bytes, IPC_CREAT | 0600);
	done(out, id);
	if (!out->ok)
		return;
	char *memory = shmat(id, NULL, 0);
	shmctl(id, IPC_RMID, NULL); /* removed with the last process that uses it */
	done(out, memory == (char *)-1 ? -1 : 0);
	if (out->ok)
		touch(memory, bytes);
}

/* by_file fills a file in a directory, for example on a tmpfs, and removes it. */
struct in_directory {
	long bytes; /* first, because the others read only this */
	const char *directory;
};

static void by_file(const void *arg, struct outcome *out)
{
	static char block[MIB];
	const struct in_directory *in = arg;
	int fd = open(in->directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	done(out, fd);
	memset(block, 'x', sizeof(block));
	for (long at = 0; out->ok && at < in->bytes; at += MIB) {
		done(out, write(fd, block, MIB));
		if (out->ok)
			atomic_fetch_add(reached, MIB);
	}
}

static const struct variant kinds[] = {
	{"malloc", by_malloc, NULL},
	{"fork", by_fork, NULL},
	{"memfd", by_memfd, NULL},
	{"shm", by_sysv, NULL},
};

int cmd_membomb(int argc, char **argv)
{
	struct outcome *out = mmap(NULL, sizeof(*out), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	reached = mmap(NULL, sizeof(*reached), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (argc != 3 || out == MAP_FAILED || reached == MAP_FAILED)
		usage("membomb: by what, and how many MiB?");
	struct in_directory what = {number(argv[2], 8192) * MIB, argv[1]};
	attempt_fn *run = by_file;
	for (size_t i = 0; i < COUNT(kinds); i++)
		if (!strcmp(kinds[i].name, argv[1]))
			run = kinds[i].run;
	int status = 0;
	pid_t child = fork();
	if (child == 0) {
		run(&what, out);
		_exit(0);
	}
	if (child < 0)
		done(out, -1);
	else if (waitpid(child, &status, 0) == child && WIFSIGNALED(status)) {
		out->ok = 0;
		out->sig = WTERMSIG(status);
	}
	note(out, "%ld of %ld MiB by %s", atomic_load(reached) / MIB, what.bytes / MIB, argv[1]);
	report(STDOUT_FILENO, "membomb", out);
	return 0;
}
