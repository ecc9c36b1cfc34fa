// Package supervisor is the process that supervises one detached agent, and the calls
// with which cloved reaches it.
//
//	cloved ── order, one line ──▶ fd 3 ┐
//	       ◀── answer, one line ─ fd 4 ┤ clove supervise ── runtime ── agent
//	       ── RUN/ID/supervisor.sock ──┘        │
//	                                      daemon/logs
//
// The supervisor is the foreground's supervision with a log in place of the
// user's streams. It is in a session of its own (setsid(2)) and needs nothing of cloved
// once it has its order: cloved may be killed, restarted or replaced, and finds
// it again by the socket in the run directory. While it lives it holds the lock in
// that directory, as the supervisor of every run does.
//
// The order is an Order; the answer comes when the agent executes, or says why
// it does not. On the socket every connection is one JSON-RPC conversation
// (internal/rpc) of calls, or one session. Only root may connect: the run
// directory's mode does not keep others out, so the kernel's credentials of the peer
// decide.
//
// The output of the agent goes to the log and to each attached caller, all of it before
// the run's end is in the store: a caller that waits for the end, or follows the log up
// to it, misses nothing, and the next start finds a log without a writer. An attached
// caller that is too slow misses output, and gets the number of bytes that it missed; it
// never delays the agent or the log. A run with a terminal has a pty of the
// supervisor's in place of the user's.
//
// A foreground run has a host: the caller that it was started for. cloved hands the
// caller's connection over, so that the two need it no longer. The host misses nothing,
// for the agent waits where it reads slowly; its signals are those of this process; and
// the run ends with it, as root's ends with the program in the foreground.
//
// It does not check who may do what: cloved does.
package supervisor
