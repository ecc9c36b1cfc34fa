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
//	  │ 9 supervise   socket, OOM, CPU time, output, signals, until the end
//	  │ 10 end        cgroup kill, destroy, record; lease given back
//
// Steps 2 to 8 stand on one undo stack: a step that fails takes back those
// before it, and the record says which step it was.
//
// # What survives what
//
// The mounts live in a namespace that only the launch thread and the sandbox
// hold, the network namespace has no name, and the loop device clears itself
// when its mount goes: a kill -9 leaves a cgroup, a run directory, a layer and a
// lease, which any later clove removes (leftovers.go), because nobody holds the
// lock in the run directory any more. A template in the making has such a lock
// too. clove-init sees the socket close and kills everything inside at once;
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
