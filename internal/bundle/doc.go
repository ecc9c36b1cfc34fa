// Package bundle makes the archive of `clove debug` for bug reports: the state of
// this installation in one .tar.gz, without secrets.
//
// Every part is made by itself and in bounded time: one that hangs, fails or
// is too large costs itself only, and README.txt in the archive says so.
//
// The stored record of a run goes through Redact, which keeps what it knows to be
// harmless and leaves out everything else: a field that is new is left out
// until Redact has a rule for it.
package bundle
