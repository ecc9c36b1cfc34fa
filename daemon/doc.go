// Package daemon is cloved: it serves the API, keeps many agents alive, and carries out the
// decisions of package scheduler.
//
//	callers ── socket ── conn (limits, peer) ── access ── handlers
//	                                                        │
//	        store ◀── short transactions ── records ── cache ── reconciler
//	                                                              │ starts, restarts, cleans up
//	        RUN/ID/supervisor.sock ◀── calls, sessions ── supervisors
//
// The store is the truth, and cloved is one of the processes that write it:
// foreground runs and supervisors are the others. The cache is a copy of the
// store in memory. It checks the file's revision before each answer, so that
// cloved sees every change that another process has committed. Events of
// runs are read from the store's own numbered events.
//
// The reconciler (reconciler.go) is one goroutine that carries out what package
// scheduler decides from the stored runs: it starts queued runs (starts.go),
// queues ended ones again, and ends those in the queue that were stopped. It also
// cleans up after supervisors that died (death.go). It looks again when the store
// changes, at the time that the scheduler names, and when the wall clock is set
// (clock.go). It keeps nothing that a restart of cloved would lose: kill -9 at any
// moment, and the next cloved finds the same store and the same supervisors.
//
// A store that fails, full or read-only, is tried again every few seconds, and
// logged once. Live agents do not need it. A start whose failure could not be
// stored is held back for a while. The record of a run that ends meanwhile is in
// its run directory, or its supervisor waits until it can store it.
//
// A run is started by a supervisor process of its own (package supervisor),
// and all that acts on a live agent is passed on to it.
//
// The kernel's credentials of the socket's peer identify the caller. A caller sees its
// own runs and root sees all; to others a run does not exist. The limits of users
// other than root are in limits.go.
//
// It refuses to hold the store open, to keep in memory alone what it must remember
// of an agent, and to do anything for a caller that the caller could not do itself.
package daemon
