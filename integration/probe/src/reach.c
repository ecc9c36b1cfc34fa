/* Ways to send something to an address, and to receive an answer. An attempt
 * succeeds when an answer with the word of the test network's servers arrives, or,
 * if no answer is expected, when the kernel has accepted the packet. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "probe.h"

#define WORD "REACHED"
#define REQUEST "GET / HTTP/1.0\r\n\r\n"
#define PATIENCE_MS 1500

struct target {
	struct sockaddr_storage address;
	socklen_t length;
	int family;
};

static struct target target;

struct way {
	int type, protocol, protocol6;
	int flags; /* of sendto */
	enum { STREAM, DATAGRAM, ECHO, BLIND } talk;
};

/* receive_answer waits for the answer. On a stream it may take several reads. */
static void receive_answer(int fd, struct outcome *out, int any)
{
	char text[1000] = "";
	size_t used = 0;
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	for (;;) {
		int n = poll(&ready, 1, PATIENCE_MS);
		if (n == 0)
			errno = ETIMEDOUT;
		ssize_t got = n > 0 ? recv(fd, text + used, sizeof(text) - 1 - used, 0) : -1;
		if (got > 0)
			used += (size_t)got;
		text[used] = 0;
		note(out, "%s", text);
		out->ok = used > 0 && (any || strstr(text, WORD));
		if (out->ok || got <= 0 || used == sizeof(text) - 1) {
			out->err = out->ok ? 0 : got < 0 ? errno : ENOMSG;
			return;
		}
	}
}

/* echo_request makes an ICMP message, with a checksum if the kernel adds none: on a
 * raw IPv4 socket. */
static size_t echo_request(unsigned char *packet)
{
	memset(packet, 0, 8);
	if (target.family == AF_INET6) {
		packet[0] = ICMP6_ECHO_REQUEST;
		return 8;
	}
	packet[0] = ICMP_ECHO;
	unsigned sum = ICMP_ECHO << 8;
	sum = ~sum & 0xffff;
	packet[2] = (unsigned char)(sum >> 8);
	packet[3] = (unsigned char)sum;
	return 8;
}

static void by_way(const void *arg, struct outcome *out)
{
	const struct way *way = arg;
	const struct sockaddr *address = (const struct sockaddr *)&target.address;
	if (way->type == SOCK_RAW && target.family == AF_INET6)
		((struct sockaddr_in6 *)&target.address)->sin6_port = 0; /* raw(7): EINVAL otherwise */
	unsigned char packet[64] = REQUEST;
	size_t size = strlen(REQUEST);
	int fd = socket(target.family, way->type, target.family == AF_INET6 ? way->protocol6 : way->protocol);
	if (fd < 0) {
		done(out, fd);
		note(out, "socket");
		return;
	}
	if (way->talk == ECHO)
		size = echo_request(packet);
	int yes = 1;
	setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &yes, sizeof(yes));
	/* The time limit also applies to connect, socket(7). */
	struct timeval patience = {.tv_sec = PATIENCE_MS / 1000, .tv_usec = PATIENCE_MS % 1000 * 1000};
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	long result;
	if (way->talk == STREAM && !way->flags) {
		result = connect(fd, address, target.length);
		if (result == 0)
			result = send(fd, packet, size, MSG_NOSIGNAL);
	} else {
		result = sendto(fd, packet, size, way->flags | MSG_NOSIGNAL, address, target.length);
	}
	if (result < 0 || way->talk == BLIND) {
		done(out, result);
		note(out, "send");
		return;
	}
	receive_answer(fd, out, way->talk == ECHO);
}

#define WAY(...) by_way, &(const struct way){__VA_ARGS__}

static const struct variant ways[] = {
	{"tcp", WAY(SOCK_STREAM, 0, 0, 0, STREAM)},
	{"tcp-fast-open", WAY(SOCK_STREAM, 0, 0, MSG_FASTOPEN, STREAM)},
	{"mptcp", WAY(SOCK_STREAM, IPPROTO_MPTCP, IPPROTO_MPTCP, 0, STREAM)},
	{"sctp", WAY(SOCK_STREAM, IPPROTO_SCTP, IPPROTO_SCTP, 0, STREAM)},
	{"udp", WAY(SOCK_DGRAM, 0, 0, 0, DATAGRAM)},
	{"udp-blind", WAY(SOCK_DGRAM, 0, 0, 0, BLIND)}, /* multicast, broadcast */
	{"udplite", WAY(SOCK_DGRAM, IPPROTO_UDPLITE, IPPROTO_UDPLITE, 0, BLIND)},
	{"icmp", WAY(SOCK_DGRAM, IPPROTO_ICMP, IPPROTO_ICMPV6, 0, ECHO)},
	{"raw-icmp", WAY(SOCK_RAW, IPPROTO_ICMP, IPPROTO_ICMPV6, 0, ECHO)},
	{"raw-sctp", WAY(SOCK_RAW, IPPROTO_SCTP, IPPROTO_SCTP, 0, BLIND)},
	{"raw-gre", WAY(SOCK_RAW, IPPROTO_GRE, IPPROTO_GRE, 0, BLIND)},
	{"raw-tcp", WAY(SOCK_RAW, IPPROTO_TCP, IPPROTO_TCP, 0, BLIND)},
};

/* aim parses an address, with or without a zone, and a port. */
static void aim(const char *address, const char *port)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&target.address;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&target.address;
	in_port_t number_port = htons((in_port_t)number(port, 65535));
	if (inet_pton(AF_INET, address, &v4->sin_addr) == 1) {
		v4->sin_port = number_port;
		target.length = sizeof(*v4);
		target.family = v4->sin_family = AF_INET;
		return;
	}
	char plain[INET6_ADDRSTRLEN] = "";
	const char *zone = strchr(address, '%');
	snprintf(plain, sizeof(plain), "%.*s", zone ? (int)(zone - address) : (int)strlen(address), address);
	if (inet_pton(AF_INET6, plain, &v6->sin6_addr) != 1)
		usage("that is no address");
	v6->sin6_scope_id = zone ? (unsigned)number(zone + 1, 1000) : 0;
	v6->sin6_port = number_port;
	target.length = sizeof(*v6);
	target.family = v6->sin6_family = AF_INET6;
}

int cmd_reach(int argc, char **argv)
{
	char name[512];
	if (argc < 3)
		usage("reach what?");
	aim(argv[1], argv[2]);
	snprintf(name, sizeof(name), "reach %s %s", argv[1], argv[2]);
	return variants(name, ways, COUNT(ways), argc - 3, argv + 3);
}
