// Command clove-oci is an OCI runtime: the command line that containerd's shim,
// conmon and Docker call in place of runc's. Each call is one short process,
// but for run in the foreground.
//
// Package oci reads the agent's own rules from a bundle's annotations; package
// oci/container makes the container. This package is flags, texts and exit
// statuses. They are runc's wherever an engine reads them: the status of a
// failure, the last line of level error in the log, the lines of --version, no
// line break behind state's JSON. Only the program's name differs.
//
// It refuses what it does not support: no command of runc's is accepted and then
// does nothing.
package main
