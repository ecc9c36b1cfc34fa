/* Attacks that call the kernel by another machine's numbers. */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

#ifdef __x86_64__
/* int80 makes a call of the i386 table from this 64-bit program. */
static long int80(long call, long first, long second, long third)
{
	long result;
	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(call), "b"(first), "c"(second), "d"(third)
			 : "r8", "r9", "r10", "r11", "memory");
	if (result < 0 && result > -4096) {
		errno = (int)-result;
		return -1;
	}
	return result;
}

static void by_int80(const void *arg, struct outcome *out)
{
	(void)arg;
	done(out, int80(20 /* getpid */, 0, 0, 0));
	if (out->ok)
		note(out, "getpid of i386 answered");
}

/* socket has the number 359 there, and a filter for the 64-bit table sees 359. */
static void by_int80_socket(const void *arg, struct outcome *out)
{
	(void)arg;
	done(out, int80(359, 17 /* AF_PACKET */, 3 /* SOCK_RAW */, 0));
}

static void by_x32(const void *arg, struct outcome *out)
{
	(void)arg;
	done(out, syscall(0x40000000 + SYS_getpid));
}
#endif

static void by_unknown(const void *arg, struct outcome *out)
{
	(void)arg;
	done(out, syscall(4000));
}

static const struct variant ways[] = {
#ifdef __x86_64__
	{"int80", by_int80, NULL},
	{"int80-socket", by_int80_socket, NULL},
	{"x32", by_x32, NULL},
#endif
	{"unknown", by_unknown, NULL},
};

int cmd_abi(int argc, char **argv)
{
	return variants("abi", ways, COUNT(ways), argc - 1, argv + 1);
}
