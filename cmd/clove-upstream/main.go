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
	"clove.run/clove/models/link"
	"clove.run/clove/models/upstream"
)

const (
	setupFD     = confine.FirstFD // a pipe with the setup
	memoryBytes = 512 << 20       // where the heap is kept
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "clove-upstream:", err)
		os.Exit(1)
	}
}

// run returns only after a failure, or when control has closed the channel and no call is in
// flight any more.
func run(arguments []string) error {
	debug.SetMemoryLimit(memoryBytes)
	var setup link.Setup
	entered, err := confine.Enter(arguments, confine.Options{JournalBytes: link.JournalBytes, Prepare: func() (err error) {
		file := os.NewFile(setupFD, "setup")
		defer file.Close()
		if setup, err = upstream.ReadSetup(file); err != nil {
			return fmt.Errorf("cannot read the setup: %w", err)
		}
		return nil
	}})
	if err != nil {
		return err
	}
	if err := confine.Destinations(entered.Number); err != nil {
		return err
	}
	server, err := upstream.New(entered.Channel, entered.Journal, setup)
	if err != nil {
		return err
	}
	return server.Serve()
}
