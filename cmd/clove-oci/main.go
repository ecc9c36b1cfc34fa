package main

import (
	"os"

	"clove.run/clove/oci/container"
	"clove.run/clove/oci/monitor"
)

// version is set by the build: -ldflags "-X main.version=…".
var version = "0.0.0-dev"

// Inside the new namespaces this binary is started again and must become the
// container's process before anything else runs.
func init() {
	if len(os.Args) > 1 && os.Args[1] == container.ReexecArgument {
		container.Reexec()
	}
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == monitor.Argument {
		os.Exit(monitor.Main(os.Args[2:]))
	}
	p := program{out: os.Stdout, err: os.Stderr}
	os.Exit(p.execute(os.Args))
}
