package main

import (
	"os"

	"clove.run/clove/client"
	"clove.run/clove/runtime"
)

// Inside the new namespaces this binary is started again and must become the
// sandbox's init before anything else runs.
func init() {
	if len(os.Args) > 1 && os.Args[1] == runtime.ReexecArgument {
		runtime.Reexec()
	}
}

func main() {
	p := program{
		in: os.Stdin, out: os.Stdout, err: os.Stderr,
		host:   currentHost,
		open:   openRuntime,
		dial:   client.Dial,
		doctor: runtime.Doctor,
	}
	os.Exit(p.execute(os.Args[1:]))
}
