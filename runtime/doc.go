// Package runtime turns an agent.Spec into a running, limited, supervised
// sandbox and its end into one agent.Record.
//
// # The launch, in order
//
//	clove run                                                     host
//	  │ 1 enforce     which control holds with what here, or refuse
//	  │ 2 store       lease of a host id range, name; state starting
//	  │ 3 run dir     /run/clove/ID with a locked file: "I am alive"
//	  │ 4 root        a thread in a private mount namespace builds the tree
//	  │ 5 network     a namespace of the host's, loopback up
//	  │ 6 compile     Spec to OCI config.json to libcontainer's config
//	  │ 7 create      libcontainer: cgroup, namespaces, mounts, pivot_root,
//	  │               no_new_privs, seccomp …
//	  │               └─ exec clove-init through a descriptor (PID 1)   sandbox
//	  │ 8 orders      argv, environment, ids, rlimits over a socket
//	  │               └─ clove-init starts the agent as its own user
//	  │ 9 supervise   socket, OOM, CPU time, output, the sandbox's sockets,
//	  │               signals, until the end
//	  │ 10 end        cgroup kill, destroy, record; lease given back
//
// Steps 2 to 8 stand on one undo stack: a step that fails takes back those
// before it, and the record says which step it was. Each has a bound (start.go).
//
// # While it runs
//
// A Live (live.go) is the running agent in the hands of others. What changes
// it is done in the supervisor's loop, one thing at a time; what takes long is
// not:
//
//   - Exec has clove-init's second stage enter the sandbox (libcontainer: the
//     same namespaces, cgroup and filter) and become what the agent is by the
//     same steps. It is our child, so we bury it, and each stage of an entry that
//     failed (sandbox_end.go); PID 1's end waits for that.
//   - CopyIn and CopyOut go through /proc/PID/root with openat2, on a thread that
//     has the agent's ids for files, so that no link leads out and no path leads
//     to what the agent could not have. Data passes a pipe: whoever does not take
//     or give it holds nothing of the agent's open. What is written to a tmpfs is
//     charged to clove.
//   - Update checks, changes the cgroup, clove-init's clock and the store, each
//     with a way back, and then the gate's rules, which cannot fail. On v2 the
//     agent stands still while its memory limit falls, because the kernel kills
//     for one that is exceeded; on v1 it refuses that by itself.
//   - Layer freezes the cgroup for who reads what the agent changed, together
//     with Pause or without. The reader is sent away when the agent has to move: at
//     its deadline and its end, which waits until the layer is let go. Whoever
//     reads the layer is root; whoever looks at the host's side of the workspace, or
//     writes there, is a thread with the asking user's ids (layer.go).
//   - Pause freezes the cgroup, clove-init included: the supervisor thaws it at
//     the deadline and before it ends it. If the supervisor dies, a paused agent
//     stays as it is, and makes no progress, until another clove removes it.
//
// # What survives what
//
// The mounts live in a namespace that only the launch thread and the sandbox
// hold, the network namespace has no name, and the loop device clears itself
// when its mount goes: a kill -9 leaves a cgroup, a run directory, a layer and a
// lease, which the next run, cloved or clove gc removes (leftovers.go, tidy.go), because nobody holds the
// lock in the run directory any more, nor its equal in the state directory
// (signs.go), which is there also when the run directory was removed. A template in the making has such a lock
// too. A record that the store does not take stays in the run directory, or,
// of a detached run, with its supervisor until there is a place for it.
// clove-init sees the socket close and kills everything inside at once;
// before it holds the socket, the parent-death signal does.
//
// # Who is who
//
// clove is root on the host. Inside, every id is mapped to a range that this
// agent alone has. clove-init is id 65533 there, with the few capabilities that
// changing ids and killing need, and the agent is another id with none.
//
// # What it refuses
//
// It never weakens a limit silently, and no type of libcontainer leaves it:
// that library promises no stable interface.
package runtime
