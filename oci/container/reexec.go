package container

import (
	"github.com/opencontainers/runc/libcontainer"
	_ "github.com/opencontainers/runc/libcontainer/nsenter" // joins the namespaces before Go starts
)

// ReexecArgument is the argument with which libcontainer starts its own binary
// again, inside the new namespaces. No subcommand may have this name.
const ReexecArgument = "init"

// Reexec finishes the construction of the container and becomes its process.
// The program calls it from an init function when its first argument is
// ReexecArgument, before anything else can run. It does not return.
func Reexec() { libcontainer.Init() }
