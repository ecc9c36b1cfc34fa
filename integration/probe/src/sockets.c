/* Sockets of every family that an agent must not have, and some that it needs.
 * They are made and closed, never bound or connected: an AF_VSOCK socket that
 * connects would reach the machine's hypervisor. */
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

struct kind {
	long domain, type, protocol;
};

static void by_socket(const void *arg, struct outcome *out)
{
	const struct kind *kind = arg;
	/* The raw call, because the library's would cut the arguments to int. */
	done(out, syscall(SYS_socket, kind->domain, kind->type, kind->protocol));
}

static void by_pair(const void *arg, struct outcome *out)
{
	const struct kind *kind = arg;
	int pair[2];
	done(out, syscall(SYS_socketpair, kind->domain, kind->type, kind->protocol, pair));
}

#define HIGH (1L << 32)
#define KIND(...) by_socket, &(const struct kind){__VA_ARGS__}

static const struct variant families[] = {
	{"unix", KIND(AF_UNIX, SOCK_STREAM, 0)},
	{"tcp", KIND(AF_INET, SOCK_STREAM, 0)},
	{"tcp6", KIND(AF_INET6, SOCK_STREAM, 0)},
	{"udp", KIND(AF_INET, SOCK_DGRAM, 0)},
	{"route", KIND(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE)},
	{"raw", KIND(AF_INET, SOCK_RAW, IPPROTO_ICMP)},
	{"raw6", KIND(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6)},
	{"packet", KIND(AF_PACKET, SOCK_RAW, 0)},
	{"alg", KIND(AF_ALG, SOCK_SEQPACKET, 0)},
	{"vsock", KIND(AF_VSOCK, SOCK_STREAM, 0)},
	{"audit", KIND(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT)},
	{"generic", KIND(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC)},
	{"netfilter", KIND(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER)},
	{"uevent", KIND(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT)},
	{"sock-diag", KIND(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG)},
	{"xfrm", KIND(AF_NETLINK, SOCK_RAW, NETLINK_XFRM)},
	{"sctp", KIND(AF_INET, SOCK_STREAM, IPPROTO_SCTP)},
	{"dccp", KIND(AF_INET, SOCK_DCCP, 0)},
	{"mptcp", KIND(AF_INET, SOCK_STREAM, IPPROTO_MPTCP)},
	{"xdp", KIND(AF_XDP, SOCK_RAW, 0)},
	{"bluetooth", KIND(AF_BLUETOOTH, SOCK_RAW, 1)},
	{"can", KIND(AF_CAN, SOCK_RAW, 1)},
	{"tipc", KIND(AF_TIPC, SOCK_SEQPACKET, 0)},
	{"rds", KIND(AF_RDS, SOCK_SEQPACKET, 0)},
	{"kcm", KIND(AF_KCM, SOCK_SEQPACKET, 0)},
	{"smc", KIND(AF_SMC, SOCK_STREAM, 0)},
	{"key", KIND(AF_KEY, SOCK_RAW, 2)},
	{"tcp-high-bit", KIND(AF_INET | HIGH, SOCK_STREAM, 0)},
	{"packet-high-bit", KIND(AF_PACKET | HIGH, SOCK_RAW, 0)},
	{"alg-high-bit", KIND(AF_ALG | HIGH, SOCK_SEQPACKET, 0)},
	{"generic-high-bit", KIND(AF_NETLINK | HIGH, SOCK_RAW | HIGH, NETLINK_GENERIC | HIGH)},
	{"raw-high-bit", KIND(AF_INET, SOCK_RAW | HIGH, IPPROTO_ICMP | HIGH)},
	{"pair-unix", by_pair, &(const struct kind){AF_UNIX, SOCK_STREAM, 0}},
	{"pair-tipc", by_pair, &(const struct kind){AF_TIPC, SOCK_STREAM, 0}},
};

int cmd_socket(int argc, char **argv)
{
	return variants("socket", families, COUNT(families), argc - 1, argv + 1);
}
