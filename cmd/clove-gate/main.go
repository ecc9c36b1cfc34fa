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
	// The first descriptor after the standard streams, where exec.Cmd.ExtraFiles puts the
	// channel.
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

// run returns only after a failure, or when the broker has closed the channel.
func run(arguments []string) error {
	// Pid 1 proves a new pid namespace, which clove alone makes.
	if os.Getpid() != 1 || len(arguments) != 1 {
		return errors.New("this program is started by clove only")
	}
	// Not 0: the gate must not keep root's id, and setresuid(0) would silently do so.
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
	// The second filter needs the numbers of the DNS sockets, which come with the first
	// message. Serve calls the function before it reads a byte of the agent's.
	return gate.Serve(conn, func(addressed []int) error {
		return install(destinationFilter(append(addressed, channel)))
	})
}
