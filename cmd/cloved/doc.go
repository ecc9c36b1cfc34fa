// Command cloved keeps agents running and serves clove's API on a Unix socket.
//
// It takes the lock of its state directory, so that there is one cloved for each, reads its
// configuration, listens, and serves until SIGTERM or SIGINT. SIGHUP reloads the
// configuration. Everything else is in package daemon. It logs to stderr, one line per
// event, for journald.
//
// It refuses to start agents itself: `clove supervise` does, in one process per agent that
// outlives cloved.
package main
