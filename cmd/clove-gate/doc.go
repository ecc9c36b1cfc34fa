// Command clove-gate reads what an agent sends to the network, and relays what
// clove's broker allows. Package egress/gate is what it does; this is how it
// comes to be nobody before it does it.
//
// clove starts it as root, with the channel as descriptor 3, a user id of its
// own as the one argument, and new network, mount, pid, ipc, uts and cgroup
// namespaces. Then, in this order:
//
//	namespaces   are they new? else a mistake would unmount the host's root
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
// A call that is not in the table kills the process, because a gate that makes
// it is not the gate any more, and its end is the agent's network's end. Only
// open and socket fail with EPERM: the standard library may try them, and the
// probe must survive them.
//
// Filter 2 closes what the first cannot see: sendmsg(2) takes its destination
// from memory. On an outside UDP socket it would leave the peer that the rules
// allowed, and with MSG_FASTOPEN on a shut down listener it would dial from the
// host's namespace. So sendmsg works on the channel and the DNS sockets alone,
// and these numbers can never be closed and thus never be another socket.
//
// Any failure is one line on standard error, which must not be a regular file
// (it could not be written), and exit status 1. Nothing was served then.
package main
