/* Attacks through a terminal: typing in place of its user. Each attempt makes a
 * pseudo-terminal of its own, so the control affects no user. */
#define _XOPEN_SOURCE 700
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include "probe.h"

/* terminal makes this process the leader of a session with a terminal of its own. */
static int terminal(struct outcome *out)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY);
	done(out, master < 0 || grantpt(master) || unlockpt(master) ? -1 : 0);
	if (!out->ok) {
		note(out, "no pseudo-terminal");
		return -1;
	}
	setsid();
	int slave = open(ptsname(master), O_RDWR);
	if (slave >= 0)
		ioctl(slave, TIOCSCTTY, 0);
	done(out, slave);
	return slave;
}

static void by_ioctl(const void *arg, struct outcome *out)
{
	unsigned long command = *(const unsigned long *)arg;
	/* "\n" to push, line discipline 0 (the usual one), selection mode 0 */
	union {
		char byte;
		int number;
	} what = {.number = (command & 0xffffffff) == TIOCSTI ? '\n' : 0};
	int waiting = 0, slave = terminal(out);
	if (slave < 0)
		return;
	done(out, syscall(SYS_ioctl, slave, command, &what));
	if (ioctl(slave, FIONREAD, &waiting) == 0)
		note(out, "%d bytes wait in the terminal", waiting);
}

static const unsigned long size = TIOCGWINSZ, sti = TIOCSTI, sti_high = TIOCSTI | 1UL << 32,
			   sti_top = TIOCSTI | 1UL << 63, console = TIOCLINUX, console_high = TIOCLINUX | 1UL << 32,
			   discipline = TIOCSETD;

static const struct variant commands[] = {
	{"size", by_ioctl, &size},
	{"sti", by_ioctl, &sti},
	{"sti-high-bit", by_ioctl, &sti_high},
	{"sti-top-bit", by_ioctl, &sti_top},
	{"linux", by_ioctl, &console},
	{"linux-high-bit", by_ioctl, &console_high},
	{"setd", by_ioctl, &discipline},
};

int cmd_tty(int argc, char **argv)
{
	return variants("tty", commands, COUNT(commands), argc - 1, argv + 1);
}
