/* Programs that a process loads into the kernel: filters for a socket or for its
 * own system calls. Each attempt loads at most one, which ends with the attempt. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

static struct sock_filter everything[] = {BPF_STMT(BPF_RET | BPF_K, 0xffffffff)};
static struct sock_fprog all_packets = {COUNT(everything), everything};
static struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
static struct sock_fprog all_calls = {COUNT(allow), allow};

/* datagrams returns a socket: a local one if the filter allows no other. */
static int datagrams(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	return fd < 0 ? socket(AF_UNIX, SOCK_DGRAM, 0) : fd;
}

/* set tries an option that takes a classic program. */
static void set(struct outcome *out, long level, long option)
{
	int one = 1, fd = datagrams();
	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
	done(out, syscall(SYS_setsockopt, fd, level, option, &all_packets, sizeof(all_packets)));
}

static void by_option(const void *arg, struct outcome *out) { set(out, SOL_SOCKET, *(const int *)arg); }

static void by_high_bits(const void *arg, struct outcome *out)
{
	set(out, SOL_SOCKET | 1L << 32, *(const int *)arg | 1L << 40);
}

/* An extended program is named by a descriptor; only the host's root can have one. */
static void by_descriptor(const void *arg, struct outcome *out)
{
	int none = -1;
	done(out, setsockopt(datagrams(), SOL_SOCKET, *(const int *)arg, &none, sizeof(none)));
}

/* A TCP signing key: the kernel first checks its address. */
static void by_key(const void *arg, struct outcome *out)
{
	struct tcp_md5sig key = {.tcpm_keylen = 4};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	key.tcpm_addr.ss_family = AF_INET;
	done(out, setsockopt(fd < 0 ? datagrams() : fd, IPPROTO_TCP, *(const int *)arg, &key, sizeof(key)));
}

static void by_seccomp(const void *arg, struct outcome *out)
{
	(void)arg;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	done(out, syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &all_calls));
}

static void by_prctl(const void *arg, struct outcome *out)
{
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	done(out, syscall(SYS_prctl, PR_SET_SECCOMP | *(const long *)arg, SECCOMP_MODE_FILTER, &all_calls, 0, 0));
}

/* Ordinary uses of the same two calls. */
static void by_ordinary(const void *arg, struct outcome *out)
{
	(void)arg;
	int one = 1;
	done(out, setsockopt(datagrams(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) | prctl(PR_SET_NAME, "probe"));
}

static const struct variant ways[] = {
	{"socket", by_option, &(const int){SO_ATTACH_FILTER}},
	{"socket-high-bits", by_high_bits, &(const int){SO_ATTACH_FILTER}},
	{"reuseport", by_option, &(const int){SO_ATTACH_REUSEPORT_CBPF}},
	{"bpf", by_descriptor, &(const int){SO_ATTACH_BPF}},
	{"reuseport-bpf", by_descriptor, &(const int){SO_ATTACH_REUSEPORT_EBPF}},
	{"tcp-key", by_key, &(const int){TCP_MD5SIG}},
	{"tcp-key-ext", by_key, &(const int){TCP_MD5SIG_EXT}},
	{"seccomp", by_seccomp, NULL},
	{"prctl", by_prctl, &(const long){0}},
	{"prctl-high-bit", by_prctl, &(const long){1L << 32}},
	{"ordinary", by_ordinary, NULL},
};

int cmd_filter(int argc, char **argv)
{
	return variants("filter", ways, COUNT(ways), argc - 1, argv + 1);
}
