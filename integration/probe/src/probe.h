/*
  * Declarations that the parts of the probe share. README.md in the folder above says what
  * the probe is and how it is built.
 */
#ifndef PROBE_H
#define PROBE_H

#include <stddef.h>

/* How one attempt ended. ok means that the attack succeeded. */
struct outcome {
	int ok;
	int err; /* errno, when not ok */
	int sig; /* the signal that ended the attempt, set by attempt() */
	char detail[1024];
};

typedef void attempt_fn(const void *arg, struct outcome *out);

/* One form of an attack: "unshare" has one for each namespace. */
struct variant {
	const char *name;
	attempt_fn *run;
	const void *arg;
};

/* note sets the detail. */
void note(struct outcome *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* done takes a system call's result: a negative one is a failure with errno. */
void done(struct outcome *out, long result);

/* attempt runs one variant in a child of its own, so that its changes, or a signal
 * that kills it, affect only the child, and prints the line. */
void attempt(const char *probe, const struct variant *v);

/* variants attempts those that argv names, or all if it names none. */
int variants(const char *probe, const struct variant *list, size_t count, int argc, char **argv);

/* report prints one line of JSON on the descriptor. */
void report(int fd, const char *probe, const struct outcome *out);

/* number parses a count within bounds, so that no probe can harm its host. */
long number(const char *text, long most);

/* usage ends the program: the command line was wrong, and nothing ran. */
void usage(const char *message) __attribute__((noreturn));

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The commands, by file. argv[0] is the command's name. */
int cmd_forkbomb(int argc, char **argv); /* processes.c */
int cmd_zombies(int argc, char **argv);
int cmd_daemonize(int argc, char **argv);
int cmd_signals(int argc, char **argv);
int cmd_spin(int argc, char **argv); /* resources.c */
int cmd_diskfill(int argc, char **argv);
int cmd_inodefill(int argc, char **argv);
int cmd_fdexhaust(int argc, char **argv);
int cmd_flood(int argc, char **argv);
int cmd_membomb(int argc, char **argv);	  /* memory.c */
int cmd_unshare(int argc, char **argv);	  /* namespaces.c */
int cmd_clone(int argc, char **argv);
int cmd_setns(int argc, char **argv);
int cmd_mount(int argc, char **argv);	  /* mounts.c */
int cmd_chroot(int argc, char **argv);
int cmd_other(int argc, char **argv);	  /* others.c */
int cmd_kill(int argc, char **argv);
int cmd_fds(int argc, char **argv);
int cmd_kernel(int argc, char **argv);	  /* kernel.c */
int cmd_socket(int argc, char **argv);	  /* sockets.c */
int cmd_filter(int argc, char **argv);	  /* filters.c */
int cmd_reach(int argc, char **argv);	  /* reach.c */
int cmd_tty(int argc, char **argv);	  /* terminals.c */
int cmd_abi(int argc, char **argv);	  /* abi.c */
int cmd_read(int argc, char **argv);	  /* files.c */
int cmd_write(int argc, char **argv);
int cmd_mknod(int argc, char **argv);
int cmd_ids(int argc, char **argv);
int cmd_setuid_exec(int argc, char **argv);
int cmd_swap(int argc, char **argv);
int cmd_put(int argc, char **argv);
int cmd_join(int argc, char **argv);	  /* programs.c */
int cmd_overwrite(int argc, char **argv);
int cmd_world(int argc, char **argv);	  /* world.c */

#endif
