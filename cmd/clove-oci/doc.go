// Command clove-oci is an OCI runtime: the command line that containerd's shim,
// conmon and Docker call in place of runc's. Each call is one short process,
// but for run in the foreground.
//
// Package oci knows the agent's own rules, which stand in a bundle's
// annotations; package oci/container makes the container. This package is
// flags, texts and exit statuses. Those are runc's wherever a shim looks at
// them: 1 for every failure, the last line of level error in the log, the lines
// of --version, no line break behind state's JSON. Only the program's name
// differs.
//
// It refuses what it cannot do: there is no command that takes an order and
// does nothing.
package main
