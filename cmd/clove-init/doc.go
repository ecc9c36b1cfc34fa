// Command clove-init is PID 1 of every sandbox. It starts the agent, reaps
// orphans, enforces the deadline, and reports how the agent ended. It talks only
// to its supervisor, with package initproto.
//
// libcontainer has put it into the sandbox already: namespaces, root, cgroup
// and no_new_privs are in force before it runs, under an id of its own. It still has the capabilities that the start of the
// agent needs (SETUID, SETGID, SETPCAP, KILL, CHOWN). The second stage, which
// becomes the agent, drops all of them:
//
//	clove-init (PID 1)                     second stage (same binary)
//	  not dumpable, ignores signals
//	  fork + exec itself ────────────────▶ starts
//	  orders from the supervisor
//	  its own seccomp filter
//	  orders ────────────────────────────▶ pty, session, ids, capabilities,
//	  spare threads                        directory, PATH
//	  ready: end of messages ────────────▶
//	                   ◀── started [+ pty] the moment, for the wall clock, and what
//	                                       the cgroup has counted by then
//	                                       signal mask, Landlock, the agent's
//	                                       filter, rlimits
//	  ◀──── filtered [+ listener] ──────── waits for the supervisor's look at
//	                                       its filter, execve
//	                   ◀────── end of file it is the agent now
//	  started to the supervisor
//	  reap; deadline; signals; lifeline
//	  all dead: exit file, exited
//
// A second stage exists because a Go program cannot safely make more than a few
// system calls between fork and execve, and because code that changes ids should
// not share PID 1's memory.
//
// The agent's filter is on the one thread that becomes the agent, and on no other
// process before that. It may refuse everything but execve: a second thread
// without it, the companion, does what is left to do. PID 1 has a filter of its
// own (package seccomp).
//
// If a preparation fails, a message says so instead of the end of file, and the
// run ends.
//
// Three goroutines of the first stage only wait (for children, for commands, for
// the second stage), and two for their clocks. sandbox.run makes all decisions.
// No timer on CLOCK_MONOTONIC limits the agent, because that clock stops while
// the host is suspended.
//
// It refuses to be started by hand, to open files by name (except /dev/ptmx, the
// command, its own /proc/self, and its cgroup's figures), and to listen on anything.
package main
