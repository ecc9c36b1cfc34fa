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
	"clove.run/clove/models/upstream"
)

// setupFD is a pipe with the setup.
const setupFD = confine.ChannelFD + 1

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "clove-upstream:", err)
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
	file := os.NewFile(setupFD, "setup")
	setup, err := upstream.ReadSetup(file)
	file.Close()
	if err != nil {
		return fmt.Errorf("cannot read the setup: %w", err)
	}
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
	server, err := upstream.New(control, setup)
	if err != nil {
		return err
	}
	return server.Serve()
}
