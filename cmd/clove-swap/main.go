// No descriptors of the cgroup file system for the life of the process, and no look at its
// processors later, which the filter forbids.
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"clove.run/clove/egress/swap/inner"
	"clove.run/clove/egress/swap/link"
	"clove.run/clove/egress/swap/outer"
	"clove.run/clove/internal/confine"
	"clove.run/clove/internal/packet"
)

// memoryBytes is where the heap is kept: bodies are streamed.
const memoryBytes = 128 << 20

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "clove-swap:", err)
		os.Exit(1)
	}
}

// run returns only after a failure, or when clove has closed the channel.
func run(arguments []string) error {
	debug.SetMemoryLimit(memoryBytes)
	entered, err := confine.Enter(arguments, confine.Options{Peer: true})
	if err != nil {
		return err
	}
	if err := confine.Destinations(entered.Number, entered.PeerNumber); err != nil {
		return err
	}
	var order link.Order
	files, err := entered.Channel.Receive(&order)
	switch {
	case err != nil:
		return err
	case order.Outer != nil:
		return outer.New(entered.Channel, entered.Peer).Serve(*order.Outer, files...)
	case order.Inner != nil:
		defer packet.CloseAll(files)
		var roots io.Reader = strings.NewReader("")
		if len(files) == 1 {
			roots = files[0]
		}
		return inner.New(entered.Channel, entered.Peer).Serve(*order.Inner, roots)
	}
	return errors.New("the first message does not say which side this is")
}
