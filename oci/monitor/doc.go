// Package monitor holds a bundle's container to its deadline and writes its exit
// record, from outside and by itself: one process for each container that has
// either, and none for others.
//
//	clove-oci create ── spawn ──▶ keeper ── lock, pidfd, timer ── "armed"
//	clove-oci start  ── start ──▶   │  the deadline: an absolute time, on disk first
//	                                ▼
//	                    the deadline: KILL to the cgroup, until it is empty
//	                    the end: exit status, figures, record
//	clove-oci delete ── finish ─▶   ▼  ends; cgroup and directory go
//
// The container's process is the engine's child (its shim's), so the keeper
// holds a pidfd, and a timer on CLOCK_BOOTTIME, which nobody can set and which
// goes on while the host is suspended. What it has to hold is a file beside
// state.json, keeper.json; that it lives is a lock, keeper.lock, which the kernel
// drops however it ends. Whoever loads the container, finds the lock free and the
// container not accounted for starts it again, and it goes on from the file. A
// container whose keeper does not answer cannot be started.
//
// It is in reach of nobody that it holds. It is not in the container's cgroup,
// nor in the engine's, and a container that would see it among its processes and
// might signal it is refused (reach.go). At the deadline it kills the cgroup, not
// the first process alone: daemons without a pid namespace of their own are in
// it, a bomb cannot fork out of it, and a paused one is let go to die. That the
// cgroup is the container's alone is made sure of before anything executes in it.
//
// How somebody else's child ended the kernel tells from Linux 6.15 on, and before
// in parts (taskstats.go, ends.go): then the record may say that nobody knows.
// Where it tells neither way, a record is refused; the deadline is not.
//
// A record is written to its file first, and then told to cloved, once
// (report.go). Nothing fails by cloved, and neither it nor a disk that hangs holds
// up the deadline of who outlived the first process (account.go).
//
// It refuses to run without root, to write elsewhere than in the directory of
// records, and over a record that is another container's.
package monitor
