// Package initproto is the protocol between a supervisor and clove-init.
//
// clove-init is PID 1 of a sandbox. It inherits its half of a stream socket
// as ControlFD and a write-only regular file as ExitFD; 0, 1 and 2 are the
// agent's own (or /dev/null, where the agent gets a terminal).
//
//	supervisor                                   clove-init
//	    │  orders [+ rules] ───────────────────────▶ │  once, first
//	    │                                            │  second stage: ids, rules, filter, limits, execve
//	    │ ◀─────────────────── filtered [+ listener] │  it is under its filter, and waits
//	    │  (answer through the listener) ──────────▶ │  execve
//	    │ ◀───────────────────────────── exec_failed │  it never ran; clove-init ends, or
//	    │ ◀──────────────────── started [+ pty master]│  it runs; the wall clock starts
//	    │                                            │
//	    │  signal ─────────────────────────────────▶ │  as often as wanted
//	    │  stop ───────────────────────────────────▶ │  StopSignal to all, grace, KILL to all
//	    │  extend ─────────────────────────────────▶ │  another wall clock
//	    │ ◀──────────────────────────────── extended │  or not, when it is too late
//	    │                                            │
//	    │ ◀────────────────────────────────── exited │  no process is left; clove-init ends
//	    │  (end of file) ──────────────────────────▶ │  lifeline lost: KILL to all
//
// A process that is started in a sandbox later is a second stage that has its
// own connection (clove-init enter): it says entered, gets orders, whose clocks
// mean nothing to it, and an end of messages, and answers started, filtered and
// the end of file that execve makes, or exec_failed. Its supervisor is its parent and sees
// its end.
//
// A frame is a four byte big-endian length and a JSON object with exactly one
// field, the kind of the message. A stream carries it because a packet socket
// refuses an environment of megabytes. The descriptors that travel (the Landlock
// rules with orders, the pty's master with started, a filter's listener with
// filtered) are attached to the frame's first byte.
//
// The last message (exec_failed or exited) is also the one line of the exit
// file, so that the way a run ended outlives its supervisor: ReadExit reads it.
// The file comes first, then the message. A new window size needs no message:
// the supervisor holds the pty's master.
//
// Both sides are clove's own, yet neither trusts the stream: frames have a
// maximum size, unknown fields, unknown kinds, trailing bytes and descriptors
// in the wrong place are errors, and after an error the connection is over.
package initproto
