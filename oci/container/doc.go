// Package container is a container of the OCI runtime specification: made from a
// config.json, found again by its id, asked, signalled and deleted. It is
// libcontainer behind a handful of calls; no type of that library leaves it.
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
// Nothing stays: each call finds the container by its directory, and trusts a
// process id only together with the start time that stands beside it. Create and
// start are two programs because an engine prepares networks and attaches its
// streams between the two, when the namespaces exist and nothing runs in them.
//
// What an end is, whether the process may be signalled, and each error's text
// are libcontainer's, which are runc's: shims match on them. Waiting for an end
// is done with a pidfd instead of runc's look every 100 ms.
//
// Run and Join are the two ways in: the first process, which makes the container,
// and one more beside it. In the foreground this program stands between the
// caller and the process (pipes or terminal, signals, exit status); detached, the
// process has the caller's own descriptors or the engine's console socket, and
// nobody stays.
//
// It refuses to run without root, and to know what a limit should be: Update asks
// its caller before anything is written.
package container
