#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *arguments;
} commands[] = {
	{"forkbomb", cmd_forkbomb, "PROCESSES"},
	{"zombies", cmd_zombies, "PROCESSES"},
	{"daemonize", cmd_daemonize, "HEARTBEAT-FILE SECONDS [hold]"},
	{"signals", cmd_signals, "SIGNALS"},
	{"spin", cmd_spin, "CPU-SECONDS"},
	{"membomb", cmd_membomb, "malloc|fork|shm|memfd|DIRECTORY MIB"},
	{"diskfill", cmd_diskfill, "DIRECTORY MIB"},
	{"inodefill", cmd_inodefill, "DIRECTORY FILES"},
	{"fdexhaust", cmd_fdexhaust, "DESCRIPTORS"},
	{"flood", cmd_flood, "BYTES"},
	{"unshare", cmd_unshare, "[NAMESPACE...]"},
	{"clone", cmd_clone, "[NAMESPACE...]"},
	{"setns", cmd_setns, "PID [NAMESPACE...]"},
	{"mount", cmd_mount, "[CALL...]"},
	{"chroot", cmd_chroot, "DIRECTORY"},
	{"other", cmd_other, "PID [WAY...]"},
	{"kill", cmd_kill, "PID SIGNAL-NUMBER"},
	{"fds", cmd_fds, ""},
	{"kernel", cmd_kernel, "[CALL...]"},
	{"socket", cmd_socket, "[FAMILY...]"},
	{"filter", cmd_filter, "[WAY...]"},
	{"reach", cmd_reach, "ADDRESS[%INTERFACE-NUMBER] PORT [WAY...]"},
	{"tty", cmd_tty, "[COMMAND...]"},
	{"abi", cmd_abi, "[WAY...]"},
	{"read", cmd_read, "PATH..."},
	{"write", cmd_write, "PATH..."},
	{"mknod", cmd_mknod, "DIRECTORY [KIND...]"},
	{"ids", cmd_ids, ""},
	{"setuid-exec", cmd_setuid_exec, "SETUID-COPY-OF-THE-PROBE"},
	{"swap", cmd_swap, "DIRECTORY NAME NAME SECONDS"},
	{"put", cmd_put, "REPORT-FILE TEXT PATH..."},
	{"join", cmd_join, "PID"},
	{"overwrite", cmd_overwrite, "TEXT SECONDS"},
	{"world", cmd_world, "[PATH...]"},
};

void usage(const char *message)
{
	fprintf(stderr, "probe: %s\n", message);
	for (size_t i = 0; i < COUNT(commands); i++)
		fprintf(stderr, "  probe %s %s\n", commands[i].name, commands[i].arguments);
	exit(2);
}

void note(struct outcome *out, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(out->detail, sizeof(out->detail), format, args);
	va_end(args);
}

void done(struct outcome *out, long result)
{
	out->ok = result >= 0;
	out->err = result < 0 ? errno : 0;
}

long number(const char *text, long most)
{
	char *end;
	errno = 0;
	long value = strtol(text, &end, 10);
	if (errno || *end || end == text || value < 0 || value > most)
		usage("a number is out of bounds");
	return value;
}

/* escaped copies text with JSON's escapes, cut to the buffer. */
static void escaped(char *to, size_t size, const char *text)
{
	size_t used = 0;
	for (; *text && used + 7 < size; text++) {
		unsigned char c = (unsigned char)*text;
		if (c == '"' || c == '\\')
			used += (size_t)sprintf(to + used, "\\%c", c);
		else if (c < 0x20 || c > 0x7e)
			used += (size_t)sprintf(to + used, "\\u%04x", c);
		else
			to[used++] = (char)c;
	}
	to[used] = 0;
}

void report(int fd, const char *probe, const struct outcome *out)
{
	char line[4096], detail[2048], name[512], error[32] = "";
	if (out->sig)
		snprintf(error, sizeof(error), "SIG%s", sigabbrev_np(out->sig));
	else if (!out->ok)
		snprintf(error, sizeof(error), "%s", strerrorname_np(out->err) ?: "?");
	escaped(detail, sizeof(detail), out->detail);
	escaped(name, sizeof(name), probe);
	int length = snprintf(line, sizeof(line), "{\"probe\":\"%s\",\"ok\":%s,\"errno\":\"%s\",\"detail\":\"%s\"}\n",
			      name, out->ok ? "true" : "false", error, detail);
	/* One write, so that lines of several processes are not mixed. */
	if (write(fd, line, (size_t)length) != length)
		exit(3);
}

void attempt(const char *probe, const struct variant *v)
{
	char name[512];
	snprintf(name, sizeof(name), "%s%s%s", probe, *v->name ? " " : "", v->name);
	struct outcome *out = mmap(NULL, sizeof(*out), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (out == MAP_FAILED)
		exit(3);
	int status = 0;
	pid_t child = fork();
	if (child == 0) {
		v->run(v->arg, out);
		_exit(0);
	}
	if (child < 0) {
		done(out, -1);
		note(out, "no process for the attempt");
	} else if (waitpid(child, &status, 0) == child && WIFSIGNALED(status)) {
		out->ok = 0;
		out->sig = WTERMSIG(status);
	}
	report(STDOUT_FILENO, name, out);
	munmap(out, sizeof(*out));
}

int variants(const char *probe, const struct variant *list, size_t count, int argc, char **argv)
{
	for (int named = 0; named < argc; named++) {
		size_t i = 0;
		while (i < count && strcmp(list[i].name, argv[named]))
			i++;
		if (i == count)
			usage("there is no such variant");
	}
	for (size_t i = 0; i < count; i++) {
		int wanted = argc == 0;
		for (int named = 0; named < argc; named++)
			wanted |= !strcmp(list[i].name, argv[named]);
		if (wanted)
			attempt(probe, &list[i]);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		usage("which attack?");
	for (size_t i = 0; i < COUNT(commands); i++)
		if (!strcmp(commands[i].name, argv[1]))
			return commands[i].run(argc - 1, argv + 1);
	usage("there is no such attack");
}
