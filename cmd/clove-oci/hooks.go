package main

import (
	"clove.run/clove/oci/container"
	"clove.run/clove/oci/monitor"
)

// hooks enforce what libcontainer does not know: the monitor (embedded) deadline and
// record, the guard network rules.
type hooks struct{ monitor.Client }

// Created checks the network rules first: for a container that is refused, no monitor
// process has to be started.
func (h hooks) Created(c *container.Container, command []string) error {
	if err := checkNetwork(c); err != nil {
		return err
	}
	return h.Client.Created(c, command)
}

// Starting sets up the network first. It waits for cloved, and that time must not count
// against the deadline, which begins with the second call.
func (h hooks) Starting(c *container.Container) error {
	if err := holdNetwork(c); err != nil {
		return err
	}
	return h.Client.Starting(c)
}

// Ended lets the monitor write the record before the network rules are removed.
func (h hooks) Ended(c *container.Container) error {
	if err := h.Client.Ended(c); err != nil {
		return err
	}
	return releaseNetwork(c)
}
