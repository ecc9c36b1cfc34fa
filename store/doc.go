// Package store keeps what clove must remember between its processes: every
// run, its lease on a range of host ids, and its final record.
//
// # One file
//
// Everything is in one bbolt file (schema.go draws it). A run is one JSON
// value; two indexes say who has a name and who has an id range. Each exported
// method is one transaction, and a transaction that returned is on the disk.
// State has one writer, the table in package agent: Apply and Finish move it,
// nothing else does.
//
// # Many processes
//
// In the foreground every clove process opens the file, makes a transaction
// and closes it again, so a Store is meant to be held for milliseconds. Only
// cloved keeps it open. bbolt's own lock is polled twenty times a second, so
// under load the wait is a matter of luck; Open therefore first queues on a
// lock of its own, PATH.lock, where the kernel wakes a waiter the moment that
// the holder leaves, dies or is killed. Who waits longer than the timeout gets
// an error that names the holder.
//
//	Open:   directory is ours alone → lock PATH.lock → create or open → migrate
//	Close:  close the file → unlock
//
// # Crashes
//
// A killed process leaves at worst a transaction that never happened, and both
// locks free. A new file is built under another name, synced and renamed, for
// bbolt's first initialisation writes in place and does not survive a power
// cut. bbolt panics on damaged pages, and reading a mapped file can fault:
// both become errors at the edge of this package, with the remedy.
//
// # What it refuses
//
// It holds no fast-changing state and no output (both belong to the run
// directory), no credentials, and it never decides whether a run is alive:
// that is the lock in the run directory. It does not repair a damaged file.
package store
