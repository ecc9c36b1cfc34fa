// Package probe tries single actions inside a sandbox and writes what happened.
//
// # Theory of operation
//
// clove itself is the agent of such a run: its static binary needs nothing that is
// installed inside. Main reads the actions (Try) from an argument, tries one after the
// other, and writes a line (Found) for each to stdout.
//
// A file is opened, and nothing of it is read or changed. A file that does not exist is not
// made: the nearest directory that exists then decides about a write. A program is not
// executed; access(2) knows its permissions, and file systems without execution.
//
// A system call is made in a child process, because it may end or stop the one that makes
// it. Where the filter allows no child, a thread makes it. A call that has not returned
// within CallTime was carried out.
//
// A connection and a grant are the caller's part (package reach), once the filter lets their
// socket be made.
//
// # Filters without epoll
//
// Go needs epoll for files, timers and the network, and ends a program whose filter refuses
// it, as minimal does. This package therefore makes plain system calls. Some packages that
// clove is linked with open files before main begins, so under such a filter the probe runs
// from the init function of this package, which must come before theirs. The linker takes,
// of the packages whose imports are initialised, the first one by its path. Here it is this
// one as long as it imports nothing that needs package unicode, which comes late: neither
// fmt, strings, reflect, encoding/json nor golang.org/x/sys. A test checks its imports.
//
// # What it does not do
//
// It knows no policy and no expectation, and it does not interpret what it found.
package probe
