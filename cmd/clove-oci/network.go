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

// checkNetwork refuses a container with network rules whose processes could signal its
// guard. It runs while the first process waits: what it checks cannot change before
// that executes.
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
// The order of the checks matters: a container that could kill its guard is refused
// before a guard exists.
func holdNetwork(c *container.Container) error {
	state, err := c.State()
	if err != nil {
		return err
	}
	order, member, err := ordered(state)
	if err != nil || order.Network == "" {
		return err
	}
	// Checked again, although Created did: that create may have been killed before its
	// hook ran.
	if err := monitor.CheckReach(state.Pid); err != nil {
		return err
	}
	kept, err := c.Kept()
	if err != nil {
		return err
	}
	order.Directory, order.PID, order.Start = kept.Directory, kept.Pid, kept.StartTime
	// A pod's member has no guard of its own. Its sandbox brought the rules; they only
	// have to be the same.
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

// clovedSocket is the socket of this node's cloved, from the engine's environment or
// the default.
func clovedSocket() string { return cmp.Or(os.Getenv("CLOVE_SOCKET"), api.DefaultSocket) }

// ordered returns what a container's annotations ask of its start. It fails unless the
// container still waits: one that was paused since the first check would, once resumed,
// run without its rules.
func ordered(state container.State) (order agent.Guard, member bool, err error) {
	order, member, err = oci.Guarded(state.Annotations, state.ID)
	if err == nil && order.Network != "" && state.Status != string(specs.StateCreated) {
		err = fmt.Errorf("cannot start a container in the %s state", state.Status)
	}
	return order, member, err
}

// releaseNetwork removes the rules after the last process. Without a pid namespace of
// its own, a container may still have processes, which would then have a network
// without rules; so it kills first. The members of a pod may outlive the sandbox, so a
// sandbox's rules stay until the engine removes the namespace, as do those of a
// container that may be a sandbox.
func releaseNetwork(c *container.Container) error {
	_ = c.Signal(unix.SIGKILL) // there may be none
	// An empty path keeps Release from touching the namespace; it still ends the guard.
	path := c.NetworkPath()
	if state, err := c.State(); err != nil || oci.HoldsPod(state.Annotations, state.ID) {
		path = ""
	}
	return guard.Release(c.Directory(), path)
}
