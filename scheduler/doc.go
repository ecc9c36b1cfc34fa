// Package scheduler decides which queued runs start, why and until when the others wait,
// and what follows from an end, a schedule or a changed clock.
//
// It is pure. It gets the runs as they are stored, the time and what the host
// has to give as values, and returns decisions; it reads no clock, opens no file
// and starts no goroutine. cloved's reconciler (package daemon) carries the
// decisions out, in two steps:
//
//	Settle   one run, the time          → the change to store, if any; when to ask again
//	Decide   all runs, the time, limits → which runs start; why the others wait; when to ask again
//
// Settle comes first, for each run until it has no change left: times that
// a clock that was set back distorted are repaired, a run that was stopped leaves the
// queue, times of schedules are started or skipped, and an ended run is queued
// again, or given up. A decision follows from the store alone: a cloved
// that was killed between the decision and the store decides the same again.
//
// A run waits for one Wait at a time. The queue is ordered by priority, which
// waiting raises, and then by age. A run that waits for memory or for a place
// among the starts holds up those behind it; any other wait holds up no run.
//
// It refuses to know how a run is started, stored or stopped, and to remember
// anything between two calls.
package scheduler
