// Command clove-gate drops all privileges, then reads what an agent sends to the
// network, and relays what clove's broker allows: the work of package egress/gate.
//
// clove starts it as root, with the channel as descriptor 3, a user id of its
// own as the one argument, and new network, mount, pid, ipc, uts and cgroup
// namespaces. Then, in this order:
//
//	package internal/confine takes all rights and loads filter 1
//	             ── the first message is read: limits, listeners ──
//	filter 2     a destination may be given only on the DNS sockets and the channels
//	             ── Ready; the first byte of the agent is read ──
//
// A failure is one line on standard error, which must not be a regular file
// (RLIMIT_FSIZE is 0), and exit status 1. Nothing was served then.
//
// It refuses to run without new namespaces, as root, or as any process but PID 1.
package main
