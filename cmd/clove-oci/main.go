package main

import (
	"os"

	"clove.run/clove/oci/container"
	"clove.run/clove/oci/monitor"
)

// version is set by the build: -ldflags "-X main.version=…".
var version = "0.0.0-dev"

// libcontainer starts this binary again inside the new namespaces, with the argument
// "init", to become the container's process. That must happen before main: nothing else
// of this program may run there.
func init() {
	if len(os.Args) > 1 && os.Args[1] == container.ReexecArgument {
		container.Reexec()
	}
}

func main() {
	// A monitor is this program again, so that a deadline needs neither cloved nor a
	// second program. It is not a command: engines and people must not call it.
	if len(os.Args) > 1 && os.Args[1] == monitor.Argument {
		os.Exit(monitor.Main(os.Args[2:]))
	}
	p := program{out: os.Stdout, err: os.Stderr}
	os.Exit(p.execute(os.Args))
}
