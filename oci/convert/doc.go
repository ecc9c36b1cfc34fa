// Package convert says in libcontainer's words what the OCI runtime
// specification says, for the parts that specconv leaves to its callers: a
// process, with its limits, ids, capabilities, scheduling and terminal's size.
//
// A bundle's process and a local run's come through here, so that both mean the
// same. It starts nothing, and it refuses what the specification does not know.
package convert
