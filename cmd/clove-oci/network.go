package main

import (
	"cmp"
	"fmt"
	"os"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/oci"
	"clove.run/clove/oci/container"
	"clove.run/clove/oci/guard"
	"clove.run/clove/oci/monitor"
)

// checkNetwork refuses a container with network rules that could signal its guard.
func checkNetwork(c *container.Container) error {
	state, err := c.State()
	if err != nil {
		return err
	}
	order, _, err := oci.Guarded(state.Annotations, state.ID)
	if err != nil || order.Network == "" {
		return err
	}
	return monitor.CheckReach(state.Pid)
}

// holdNetwork applies the network rules of a container's annotations before anything
// executes. It does so at start, because some engines make the network after create.
func holdNetwork(c *container.Container) error {
	state, err := c.State()
	if err != nil {
		return err
	}
	order, member, err := ordered(state)
	if err != nil || order.Network == "" {
		return err
	}
	// Created has checked it, unless that create was killed before.
	if err := monitor.CheckReach(state.Pid); err != nil {
		return err
	}
	kept, err := c.Kept()
	if err != nil {
		return err
	}
	order.Directory, order.PID, order.Start = kept.Directory, kept.Pid, kept.StartTime
	if member {
		return guard.Ruled(order)
	}
	return guard.Ask(clovedSocket(), order, func() error {
		state, err := c.State()
		if err == nil {
			_, _, err = ordered(state)
		}
		return err
	})
}

// clovedSocket is where cloved listens on this node, by the engine's environment.
func clovedSocket() string { return cmp.Or(os.Getenv("CLOVE_SOCKET"), api.DefaultSocket) }

// ordered is what a container's annotations ask of its start. It checks again that
// the container waits: it may have been paused since the first check, and resumed
// without its rules it would run.
func ordered(state container.State) (order agent.Guard, member bool, err error) {
	order, member, err = oci.Guarded(state.Annotations, state.ID)
	if err == nil && order.Network != "" && state.Status != string(specs.StateCreated) {
		err = fmt.Errorf("cannot start a container in the %s state", state.Status)
	}
	return order, member, err
}

// releaseNetwork removes the rules. First it kills: a container without a pid
// namespace of its own may still have processes. A pod's members may outlive its
// sandbox, so the sandbox's rules stay until the engine removes the namespace, as do
// those of a container that may be a sandbox.
func releaseNetwork(c *container.Container) error {
	_ = c.Signal(unix.SIGKILL) // there may be none
	path := c.NetworkPath()
	if state, err := c.State(); err != nil || oci.HoldsPod(state.Annotations, state.ID) {
		path = ""
	}
	return guard.Release(c.Directory(), path)
}
