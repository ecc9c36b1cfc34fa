package main

import (
	"clove.run/clove/oci/container"
	"clove.run/clove/oci/monitor"
)

// hooks are the monitor, for deadline and record, and the guard, for the network.
type hooks struct{ monitor.Client }

// Created checks the network first: a refused container needs no monitor.
func (h hooks) Created(c *container.Container, command []string) error {
	if err := checkNetwork(c); err != nil {
		return err
	}
	return h.Client.Created(c, command)
}

// Starting asks for the network first, so that its time does not count against the
// deadline.
func (h hooks) Starting(c *container.Container) error {
	if err := holdNetwork(c); err != nil {
		return err
	}
	return h.Client.Starting(c)
}

// Ended has the record written before the network rules are removed.
func (h hooks) Ended(c *container.Container) error {
	if err := h.Client.Ended(c); err != nil {
		return err
	}
	return releaseNetwork(c)
}
