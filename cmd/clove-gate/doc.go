// Command clove-gate reads what an agent sends to the network, and relays what
// clove's broker allows. Package egress/gate does that; this package drops all
// privileges before.
//
// clove starts it as root, with the channel as descriptor 3, a user id of its
// own as the one argument, and new network, mount, pid, ipc, uts and cgroup
// namespaces. Then, in this order:
//
//	namespaces   are they new? otherwise the host's root would be detached
//	descriptors  0, 1, 2 and the channel; the rest is closed
//	rlimits      no core, no file to write, no locked memory, few threads
//	root         an empty tmpfs, read-only; the old root is detached
//	bounding set, groups, gid, uid, capabilities: nothing is left
//	no_new_privs, not dumpable, killed with its parent
//	filter 1     the calls of filter.go's table, on all threads
//	probe        open and socket are tried, and must fail
//	             ── the first message is read: limits, listeners ──
//	filter 2     a destination may be given only on the DNS sockets
//	             ── Ready; the first byte of the agent is read ──
//
// A call that is not in the table kills the process: a gate that makes it has been
// taken over, and its end is the end of the agent's network. Only open and socket
// fail with EPERM, because the standard library may try them, and the probe does.
//
// Filter 2 restricts what filter 1 cannot check: sendmsg(2) reads its destination
// from memory. On an outside UDP socket a destination would bypass the peer that
// the rules allowed, and with MSG_FASTOPEN on a listener that was shut down it
// would connect from the host's namespace. So sendmsg works only on the channel
// and the DNS sockets. Their numbers cannot be closed, so they can never become
// another socket.
//
// A failure is one line on standard error, which must not be a regular file
// (RLIMIT_FSIZE is 0), and exit status 1. Nothing was served then.
//
// It refuses to run without new namespaces, as root, or as any process but PID 1.
package main
