// Command cloved keeps agents alive and answers for them on a Unix socket.
//
// It becomes the one cloved of its state directory (a lock), reads its
// configuration, listens, and serves until SIGTERM or SIGINT; SIGHUP reads the
// configuration anew. Everything else is package daemon's. Its log goes to
// stderr, one line an event, which journald keeps.
//
// It refuses to start agents itself: `clove supervise` does, in a process for
// each that outlives this one.
package main
