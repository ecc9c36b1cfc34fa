// Package host describes the machine and the caller for whom a spec is built.
//
// A Host is a value that Current fills once; all questions about variables,
// relative paths and the base system go to it, so that a spec can also be built for a
// caller other than this process. Files are looked at directly, with this
// process's rights: building a spec must not show a user what that user may not read.
//
// It refuses to change anything: it only reads.
package host
