/* Attacks with processes: too many, never reaped, never ending. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

/* Shared by all processes of a fork bomb. */
struct bomb {
	atomic_long processes;
	atomic_int err;
};

/* explode forks until most processes exist or one fork fails. Each child does the
 * same, and then waits until the pipe's writer, the first process, has ended. */
static void explode(struct bomb *bomb, long most, int pipe_read, int pipe_write)
{
	char byte;
	while (!atomic_load(&bomb->err)) {
		if (atomic_fetch_add(&bomb->processes, 1) >= most) {
			atomic_fetch_sub(&bomb->processes, 1);
			return;
		}
		pid_t child = fork();
		if (child < 0) {
			atomic_fetch_sub(&bomb->processes, 1);
			atomic_store(&bomb->err, errno);
			return;
		}
		if (child == 0) {
			close(pipe_write);
			explode(bomb, most, pipe_read, -1);
			if (read(pipe_read, &byte, 1) != 0)
				_exit(1);
			_exit(0);
		}
	}
}

int cmd_forkbomb(int argc, char **argv)
{
	struct outcome out = {0};
	int ends[2];
	if (argc != 2)
		usage("forkbomb: how many processes?");
	long most = number(argv[1], 20000);
	struct bomb *bomb = mmap(NULL, sizeof(*bomb), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (bomb == MAP_FAILED || pipe(ends))
		return 3;
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* grandchildren are reaped here, too */
	explode(bomb, most, ends[0], ends[1]);
	close(ends[1]);
	while (wait(NULL) > 0 || errno == EINTR)
		;
	out.ok = atomic_load(&bomb->processes) >= most;
	out.err = atomic_load(&bomb->err);
	note(&out, "%ld of %ld processes", (long)atomic_load(&bomb->processes), most);
	report(STDOUT_FILENO, "forkbomb", &out);
	return 0;
}

int cmd_zombies(int argc, char **argv)
{
	struct outcome out = {.ok = 1};
	if (argc != 2)
		usage("zombies: how many processes?");
	long most = number(argv[1], 20000), made = 0;
	while (out.ok && made < most) {
		pid_t child = fork();
		if (child == 0)
			_exit(0);
		done(&out, child);
		made += child > 0;
	}
	note(&out, "%ld of %ld dead processes left to others", made, most);
	report(STDOUT_FILENO, "zombies", &out);
	return 0;
}

/* linger writes to the heartbeat file for a limited time, and ignores signals. */
static void linger(const char *heartbeat, long seconds, int hold)
{
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_IGN); /* fails for KILL and STOP; the rest counts */
	prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
	if (!hold) {
		int null = open("/dev/null", O_RDWR);
		dup2(null, 0), dup2(null, 1), dup2(null, 2);
	}
	int fd = open(heartbeat, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	time_t end = time(NULL) + seconds;
	while (fd >= 0 && time(NULL) < end && write(fd, ".", 1) == 1)
		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	_exit(0);
}

/* daemonize leaves the session and every parent; with "hold" it keeps the standard
 * streams open, so that a reader that waits for their end waits for it. */
int cmd_daemonize(int argc, char **argv)
{
	struct outcome out = {0};
	if (argc < 3 || argc > 4)
		usage("daemonize: which file, and for how long?");
	long seconds = number(argv[2], 600);
	pid_t child = fork();
	if (child == 0) {
		if (setsid() < 0)
			_exit(errno);
		pid_t grandchild = fork();
		if (grandchild == 0)
			linger(argv[1], seconds, argc == 4 && !strcmp(argv[3], "hold"));
		_exit(grandchild < 0 ? errno : 0);
	}
	int status = 0;
	done(&out, child);
	if (child > 0 && waitpid(child, &status, 0) == child && status) {
		out.ok = 0;
		out.err = WEXITSTATUS(status);
	}
	note(&out, "heartbeat in %s for %ld s", argv[1], seconds);
	report(STDOUT_FILENO, "daemonize", &out);
	return 0;
}

/* signals makes this many signals pending for this process, which the kernel counts
 * for its user, and keeps them until its input ends. */
int cmd_signals(int argc, char **argv)
{
	struct outcome out = {.ok = 1};
	sigset_t blocked;
	char byte;
	if (argc != 2)
		usage("signals: how many?");
	long most = number(argv[1], 100000), sent = 0;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	while (out.ok && sent < most) {
		done(&out, sigqueue(getpid(), SIGRTMIN, (union sigval){0}));
		sent += out.ok;
	}
	note(&out, "%ld of %ld signals", sent, most);
	report(STDOUT_FILENO, "signals", &out);
	return read(STDIN_FILENO, &byte, 1) < 0 ? 3 : 0;
}
