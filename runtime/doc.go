// Package runtime turns an agent.Spec into a running, limited, supervised
// sandbox and its end into one agent.Record.
//
// # The launch, in order
//
//	clove run                                                     host
//	  │ prepare       which control holds with what here, or refuse; filter,
//	  │               network rules and the plan of the root are computed
//	  │ register      /run/clove/ID with a locked file, "I am alive"; then the
//	  │               store: lease of a host id range, name; state starting.
//	  │               The network namespace is made meanwhile
//	  │ network       a namespace of its own, loopback up
//	  │ gate          with network rules: clove-gate and the broker (egress/host)
//	  │ rootfs        a thread in a private mount namespace builds the tree
//	  │ streams       pipes for stdin, stdout and stderr
//	  │ create        Spec to OCI config.json to libcontainer's config
//	  │ start         libcontainer: cgroup, namespaces, mounts, pivot_root,
//	  │               no_new_privs, seccomp …
//	  │               └─ exec clove-init through a descriptor (PID 1)   sandbox
//	  │ verify        no_new_privs is on, read from outside
//	  │ files         Landlock rules; what the run's parent gives it is unpacked
//	  │ orders        argv, environment, ids, rlimits over a socket
//	  │               └─ clove-init starts the agent as its own user, under Landlock rules and
//	  │                  its filter, which is read from outside, too
//	  │ supervise     socket, OOM, CPU time, output, the sandbox's sockets,
//	  │               the gate, signals, until the end
//	  │ finish        cgroup kill, gate, figures, teardown, record; lease given back
//
// From register on, each step puts its undo on a stack: a step that fails takes back
// those before it, and the record says which step it was. A start that makes no progress
// in one step for the spec's time is given up (start.go).
//
// # While it runs
//
// A Live (live.go) is the handle of a running agent. Its changes are made in the
// supervisor's loop, one at a time; what takes long is done outside of it:
//
//   - Exec has clove-init's second stage enter the sandbox (libcontainer: the
//     same namespaces, cgroup and filter) and become what the agent is by the
//     same steps. It is clove's child, so clove reaps it, and each stage of an entry
//     that failed (sandbox.go): PID 1's end waits for that.
//   - CopyIn and CopyOut go through /proc/PID/root with openat2, on a thread that
//     has the agent's ids for files, so that no link leads out and no path leads
//     to what the agent could not have. Data passes through a pipe, so that a
//     caller that does not read or write keeps no file of the agent's open.
//     What is written to a tmpfs is charged to clove.
//   - Update checks, changes the cgroup, clove-init's clock and the store, each
//     with a way back, and then the gate's rules, which cannot fail. On v2 the
//     agent is frozen while its memory limit is lowered, because the kernel kills
//     for one that is exceeded; on v1 it refuses that by itself.
//   - Layer freezes the cgroup while a caller reads what the agent changed, whether it
//     is paused or not. The read is cancelled when the agent has to go on: after two
//     minutes, at its deadline, and at its end, which waits until the layer is closed.
//     Root reads the layer; a thread with the user's ids reads and writes the host's
//     side of the workspace (layer.go).
//   - Pause freezes the cgroup, clove-init included: the supervisor thaws it at
//     the deadline and before it ends it. If the supervisor dies, a paused agent
//     stays as it is, and makes no progress, until another clove removes it.
//
// # State that survives a crash
//
// The mounts live in a namespace that only the launch thread and the sandbox
// hold, the network namespace has no name, and the loop device clears itself
// when its mount goes: a kill -9 leaves a cgroup, a run directory, a layer and a
// lease. The next run in the foreground, cloved or clove gc removes them (leftovers.go),
// and keeps the layer unless no agent wrote to it. Files that the store has no record
// of are moved to lost/ (lost_files.go). They may, because the lock in the run directory is free, and so is its equal in the
// state directory (signs.go), which outlives a removal of the run directory. An
// unfinished template has such a lock too. A record that the store does not take is
// written into the run directory; if the disk is full, the supervisor of a detached run
// waits until there is.
// clove-init sees the socket close and kills everything inside at once;
// before it holds the socket, the parent-death signal does.
//
// # Ids
//
// clove is root on the host. Inside, every id is mapped to a range that this
// agent alone has. clove-init is id 65533 there, with the few capabilities that
// changing ids, handing over the terminal and killing need. The agent is another id
// without capabilities, or with --user root id 0 with those that installing packages
// needs (compile.go).
//
// # Clocks
//
// A spec with ClockStart gives the sandbox a time namespace, in which CLOCK_MONOTONIC and
// CLOCK_BOOTTIME begin there (compile.go); exec sessions join it with the others. clove-init
// then reads a shifted clock: the one absolute time that it reports, that of the agent's
// start, is shifted back where it arrives (onStarted). All others are durations.
//
// # What it refuses
//
// It never weakens a limit silently, and no type of libcontainer leaves it:
// that library promises no stable interface.
package runtime
