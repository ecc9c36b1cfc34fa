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
	"clove.run/clove/internal/packet"
	"clove.run/clove/models/front"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "clove-models:", err)
		os.Exit(1)
	}
}

// run returns only after a failure, or when control has closed the channel.
func run(arguments []string) error {
	uid, err := confine.UserID(arguments)
	if err != nil {
		return err
	}
	debug.SetMemoryLimit(512 << 20)
	control, err := packet.Inherited(os.NewFile(confine.ChannelFD, "channel"))
	if err != nil {
		return err
	}
	channel, err := confine.Channel()
	if err != nil {
		return err
	}
	if err := confine.Rights(uid); err != nil {
		return err
	}
	if err := confine.Destinations(channel); err != nil {
		return err
	}
	return front.New(control).Serve()
}
