// No descriptors of the cgroup file system for the life of the process: main
// sets the number of processors, once.
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"

	"clove.run/clove/egress/gate"
	"clove.run/clove/egress/wire"
)

const (
	channelFD = 3
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

func run(arguments []string) error {
	if os.Getpid() != 1 || len(arguments) != 1 {
		return errors.New("started by clove, not by people")
	}
	uid, err := strconv.ParseUint(arguments[0], 10, 31)
	if err != nil || uid == 0 {
		return fmt.Errorf("cannot use %q as user id", arguments[0])
	}
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(memoryBytes)
	runtime.GOMAXPROCS(min(runtime.NumCPU(), maxProcs))
	// Before the filter, so that Go's poller can still make its descriptors.
	conn, err := wire.NewConn(os.NewFile(channelFD, "channel"))
	if err != nil {
		return err
	}
	channel, err := numberOfChannel()
	if err != nil {
		return err
	}
	if err := harden(int(uid)); err != nil {
		return err
	}
	return gate.Serve(conn, func(addressed []int) error {
		return install(destinationFilter(append(addressed, channel)))
	})
}
