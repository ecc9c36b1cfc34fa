// No descriptors of the cgroup file system for the life of the process: main
// sets the number of processors, once.
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"clove.run/clove/egress/gate"
	"clove.run/clove/egress/wire"
	"clove.run/clove/internal/confine"
)

const (
	// gcPercent and memoryBytes keep the heap small, because one such process runs for
	// every agent with a network.
	gcPercent   = 25
	memoryBytes = 48 << 20
	// maxProcs: the kernel does the work of relaying, so more processors would only mean
	// more threads.
	maxProcs = 4
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "clove-gate:", err)
		os.Exit(1)
	}
}

// run returns only after a failure, or when the broker has closed the channel.
func run(arguments []string) error {
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(memoryBytes)
	runtime.GOMAXPROCS(min(runtime.NumCPU(), maxProcs))
	entered, err := confine.Enter(arguments, confine.Options{})
	if err != nil {
		return err
	}
	// The second filter needs the numbers of the DNS sockets, which come with the first
	// message. Serve calls the function before it reads a byte of the agent's.
	return gate.Serve(&wire.Conn{Conn: entered.Channel}, func(addressed []int) error {
		return confine.Destinations(append(addressed, entered.Number)...)
	})
}
