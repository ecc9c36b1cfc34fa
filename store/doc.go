// Package store keeps two bbolt files on disk: clove.db with runs, names, leases, records
// and events, and kernel.db with budgets, grants, answers and audit entries. They outlive
// clove's processes.
//
// # Two files
//
// clove.db is one bbolt file (schema.go draws it). A run is one JSON value; two
// indexes lead from a name and from an id range to its run. A method that changes
// something does it in one transaction, together with its event, and the change is on
// the disk when the method returns. A run's state follows the table in package agent:
// Enqueue and Begin store a new run, KeepContainer one that has ended, and from then
// on Begin, Apply, Finish and Requeue move it by the table's events.
//
// kernel.db is a second bbolt file, for what agents share (kernel_schema.go draws it).
// Update runs a function that reads and writes rows. Agents call often, so many callers
// share one commit (kernel_commit.go). Each bucket is declared once, as a Table: its methods,
// its indexes, its bounds, its part of Check and what ForgetRun removes follow from that
// (kernel_table.go). Other packages may declare tables and pass them to OpenKernel. Packages
// kernel/budget, kernel/grant and kernel define the meaning of rows.
//
// # Many processes
//
// Every process that needs clove.db, cloved among them, opens it, makes a
// transaction and closes it again: foreground runs, supervisors and cloved must never
// wait for each other for long. A Store is therefore held for milliseconds. cloved
// keeps a copy in memory, and learns from Revision, without opening the file, that
// it has to read again.
//
// bbolt polls its own lock twenty times a second, so under load the wait would be a
// matter of luck. Open first queues on a lock of its own, PATH.lock, where the kernel
// wakes a waiter as soon as the holder leaves, dies or is killed. If the timeout
// passes, the error names the holder.
//
//	Open:   directory is ours alone → lock PATH.lock → create or open → migrate
//	Close:  close the file → unlock
//
// kernel.db has one holder instead: cloved opens it at its start and keeps it until
// its end, so a call of an agent need not wait for an open file.
//
// # Crashes
//
// A killed process leaves at worst a transaction that never happened, and both
// locks free. A new file is built under another name, synced and renamed, because
// bbolt's first initialisation writes in place and does not survive a power cut. A
// migration copies the file first. bbolt panics on damaged pages, and reading a mapped
// file can fault: both become errors at the edge of this package, with the remedy.
//
// # What it refuses
//
// It holds no fast-changing state and no output (both are in the run directory and in
// the log's), and it never decides whether a run is alive: the lock in the run
// directory does. A run's environment is stored as it was given, secrets among it,
// in a file that only root can read; the text of a removed run is overwritten. It
// does not repair a damaged file.
package store
