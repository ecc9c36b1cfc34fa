// No descriptors of the cgroup file system for the life of the process, and no look at its
// processors later, which the filter forbids.
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

package main

import (
	"fmt"
	"os"
	"runtime/debug"

	"clove.run/clove/internal/confine"
	"clove.run/clove/tools/mcp"
)

// memoryBytes is where the heap is kept: bodies of requests take at most a quarter of it.
const memoryBytes = 256 << 20

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "clove-mcp:", err)
		os.Exit(1)
	}
}

// run returns only after a failure, or when control has closed the channel and no call is in
// flight any more.
func run(arguments []string) error {
	debug.SetMemoryLimit(memoryBytes)
	// The library of MCP makes a large buffer for each message that it reads, which with the small heap of
	// this process would mean a collection for every few.
	debug.SetGCPercent(400)
	entered, err := confine.Enter(arguments, confine.Options{})
	if err != nil {
		return err
	}
	defer entered.Journal.Close() // held as long as the process lives
	if err := confine.Destinations(entered.Number); err != nil {
		return err
	}
	return mcp.New(entered.Channel).Serve()
}
