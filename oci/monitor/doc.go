// Package monitor enforces the deadline of an OCI container and writes its exit
// record: one process for each container that has either, and none for others.
//
//	clove-oci create ── spawn ──▶ monitor ── lock, pidfd, timer ── "armed"
//	clove-oci start  ── start ──▶   │  the deadline: an absolute time, on disk first
//	                                ▼
//	                    the deadline: KILL to the cgroup, until it is empty
//	                    the end: exit status, figures, record
//	clove-oci delete ── finish ─▶   ▼  ends; cgroup and directory go
//
// The container's process is a child of the engine's shim, so the monitor has a pidfd,
// and a timer on CLOCK_BOOTTIME, which no process can set and which counts while the
// host is suspended. Its orders are a file beside state.json, keeper.json. A lock,
// keeper.lock, proves that it lives: the kernel drops it however the process ends. A
// pendingRequest that loads the container, finds the lock free and the record not written starts
// the monitor again, which goes on from the file. A container whose monitor does not
// reply cannot be started.
//
// The container cannot reach its monitor. The monitor is in neither the container's
// cgroup nor the engine's, and a container that shows it among its processes and could
// signal it is refused (reach.go). At the deadline it kills the cgroup and not only the
// first process: daemons without a pid namespace of their own are in it, a fork bomb
// cannot leave it, and a paused container is thawed to die. Before anything executes,
// arm checks that the cgroup is the container's alone.
//
// The kernel shows the exit status of another process's child from Linux 6.15 on, and
// before in parts (taskstats.go, ends.go): then the record may say that the status is
// unknown. A kernel without either refuses a record, but not a deadline.
//
// A record is written to its file first, and then reported to cloved, once
// (report.go). No failure of cloved makes the monitor fail, and neither cloved nor a
// disk that hangs delays the deadline of processes that outlived the first one
// (accounting.go).
//
// It refuses to run without root, to write outside of the directory of records, and to
// overwrite another container's record.
package monitor
