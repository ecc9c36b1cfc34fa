package main

import (
	"cmp"
	"os"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"clove.run/clove/api"
	"clove.run/clove/oci"
	"clove.run/clove/runtime/container"
	"clove.run/clove/runtime/guard"
)

// holdNetwork sees to it that the network rules of a container's annotations
// hold before anything executes. Only now is every engine's network made.
func holdNetwork(c *container.Container) error {
	state, err := c.State()
	if err != nil {
		return err
	}
	order, member, err := oci.Guarded(state.Annotations, state.ID)
	switch {
	case err != nil || order.Network == "":
		return err
	case state.Status != string(specs.StateCreated):
		return nil // start refuses it
	case member:
		return guard.Ruled(state.Pid)
	}
	order.Directory, order.PID = c.Directory(), state.Pid
	return guard.Ask(clovedSocket(), order)
}

// clovedSocket is where cloved listens on this node, by the engine's environment.
func clovedSocket() string { return cmp.Or(os.Getenv("CLOVE_SOCKET"), api.DefaultSocket) }

// releaseNetwork takes the rules back. A container without a pid namespace of
// its own may have processes yet.
func releaseNetwork(c *container.Container) error {
	_ = c.Signal(unix.SIGKILL) // there may be none
	return guard.Release(c.Directory(), c.NetworkPath())
}
