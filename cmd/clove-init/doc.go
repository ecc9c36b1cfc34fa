// Command clove-init is PID 1 of every sandbox. It starts the agent, buries
// its orphans, holds the wall clock, and says how the agent ended. It talks to
// its supervisor with package initproto, and nobody else talks to it.
//
// The launch has put it into the sandbox already: namespaces, root, cgroup,
// no_new_privs and the agent's own seccomp filter are on before it runs, under
// an id of its own. It still holds what the start of the agent needs (SETUID,
// SETGID, SETPCAP, KILL, CHOWN) and gives all of it up on the agent's side:
//
//	clove-init (PID 1)                     second stage (same binary)
//	  not dumpable, deaf to signals
//	  fork + exec itself ────────────────▶ starts
//	  orders from the supervisor ────────▶ pty, session, ids, capabilities,
//	  spare threads                        directory, PATH
//	  ready: end of messages ────────────▶
//	                   ◀── started [+ pty] the moment, for the wall clock, and what
//	                                       the cgroup has counted by then
//	                                       rlimits, signal mask, execve
//	                   ◀────── end of file it is the agent now
//	  started to the supervisor
//	  reap; deadline; signals; lifeline
//	  all dead: exit file, exited
//
// A second stage exists because a Go program cannot safely run more than a few
// system calls between fork and execve, and because whatever changes ids
// should not share PID 1's memory.
//
// The failure of a step comes instead of the end of file, and ends everything.
//
// Three goroutines of the first stage only wait (for children, for commands,
// for the second stage) and two for their clocks; everything that is decided
// is decided in sandbox.run. There is no timer on CLOCK_MONOTONIC that limits
// the agent: that clock stands still while the host sleeps.
//
// It refuses to be run by people, to open files by name (but /dev/ptmx, the
// command, its own /proc/self, and its cgroup's figures), and to listen on anything.
package main
