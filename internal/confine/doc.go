// Package confine takes every right from a process that parses what an agent wrote, before
// it reads the first byte of it. The process's own program calls it; package
// confine/parent starts such a process.
//
// Enter takes these measures, in this order:
//
//	namespaces   are they new? otherwise the host's root would be detached
//	descriptors  0, 1, 2, the channel and the journal; the rest is closed
//	rlimits      no core, no file to write but the journal, no locked memory, few threads
//	root         an empty tmpfs, read-only; the old root is detached
//	bounding set, groups, gid, uid, capabilities: nothing is left
//	no_new_privs, not dumpable, killed with its parent unless it has a journal
//	filter 1     the calls of the table in calls.go, on all threads
//	probe        open and socket are tried, and must fail
//
// Destinations adds filter 2, when the descriptors are known that may send messages.
//
// A call that is not in the table kills the process: one that makes it has been taken over.
// Only open and socket fail with EPERM, because the standard library may try them, and the
// probe does.
//
// Filter 2 restricts what filter 1 cannot check: sendmsg(2) reads its destination from
// memory. On an outside UDP socket a destination would bypass the peer that the rules
// allowed, and with MSG_FASTOPEN on a listener that was shut down it would connect from the
// host's namespace. So sendmsg works only on the given descriptors. Their numbers cannot be
// closed, so they can never become another socket.
//
// A process that another user than root starts for itself (Own) keeps that user's id and groups, and the
// host's namespaces and root: to leave them takes root. What it cannot do follows from the filter, which is
// the same: it opens no file, makes no socket, connects to none, executes nothing, starts no process, and
// sends no signal but to itself. Its limit of processes stays the user's.
//
// It refuses to work without new namespaces, as root, or for any process but PID 1; and Own for root.
package confine
