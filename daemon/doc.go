// Package daemon is cloved: it keeps many agents alive behind one API.
//
//	callers ── socket ── conn (limits, peer) ── access ── handlers
//	                                                        │
//	        store ◀── short transactions ── records ── cache ── reconciler
//	                                                              │ starts, restarts, buries
//	        RUN/ID/supervisor.sock ◀── calls, sessions ── supervisors
//
// The store is the truth, and cloved is one of the processes that write it:
// foreground runs and supervisors are the others. The cache is the store in
// memory; it looks at the file's revision before each answer, so what was
// acknowledged by anybody is seen. What happened to runs is read from the
// store's own numbered list, whoever did it.
//
// The reconciler is one goroutine that compares what is with what was asked for:
// it starts what waits when its turn has come (turns.go), starts again what a
// policy or the clock wants (restart.go, schedule.go), ends what waits although
// it was stopped, and lets a run be buried whose supervisor died. It hears of the end of a time as of a clock that is
// set (clock.go).
// It holds no state that a restart of cloved would lose: kill -9 at any moment,
// and the next cloved finds the same store and the same supervisors.
//
// A store that fails, full or read-only, is tried again every few seconds and
// complained of once: living agents need nothing of it, a start that could not
// be noted waits (postpone.go), and what has ended meanwhile has left its record
// in its run directory, or has a supervisor that waits for a place for it.
//
// A run is started by a supervisor process of its own (package supervisor),
// and all that acts on a live agent is passed on to it.
//
// Who calls is what the kernel says of the socket's other end. A caller sees
// its own runs and root sees all; to others a run does not exist. What
// somebody other than root may ask for is in limits.go.
//
// It refuses to hold the store open, to keep an agent's fate in memory, and to
// do anything for a caller that the caller could not do itself.
package daemon
