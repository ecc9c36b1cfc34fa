// Package container is a container of the OCI runtime specification: created from a
// config.json, loaded by its id, queried, signalled and deleted. It wraps libcontainer;
// no type of that library is in its interface.
//
//	clove-oci create                                       host
//	  │ Create     config.json to libcontainer's config; ROOT/ID is made
//	  │ Run        cgroup, namespaces, mounts, pivot_root, hooks, seccomp
//	  │            └─ this binary again, as init ── waits at ROOT/ID/exec.fifo
//	  │ pid file   the shim reads it when create has ended with 0
//	  ▼ ends; the process is the shim's child now (its subreaper)
//	clove-oci start
//	  │ Load       ROOT/ID/state.json
//	  │ Exec       opens the fifo: init becomes the container's process
//	  ▼ ends
//
// No process of clove's stays: each call finds the container by its directory, and
// trusts a process id only together with the start time that is stored beside it. Create and
// start are two programs because an engine prepares networks and attaches its
// streams between the two, when the namespaces exist and nothing runs in them.
//
// When a container counts as ended, whether it may be signalled, and the texts of
// errors are libcontainer's, and so runc's: shims match on them. It waits for an end
// with a pidfd, where runc polls every 100 ms.
//
// Hooks are called between these steps: clove-oci's enforce the deadline and the
// network rules, which libcontainer does not know.
//
// Run starts the first process, which makes the container, and Join one more. In the
// foreground this program stays between the caller and the process (pipes or terminal,
// signals, exit status). Detached, the process has the caller's own descriptors or the
// engine's console socket, and this program ends.
//
// It refuses to run without root, and to decide what a limit may be: Update calls its
// caller's check before anything is written.
package container
