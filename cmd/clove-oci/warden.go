package main

import (
	"clove.run/clove/oci/container"
	"clove.run/clove/oci/monitor"
)

// warden is all that holds a container from outside: a keeper of its own for
// deadline and record, and cloved for the network.
type warden struct{ monitor.Client }

// Created refuses what could not be held before anything is started for it.
func (w warden) Created(c *container.Container, command []string) error {
	if err := checkNetwork(c); err != nil {
		return err
	}
	return w.Client.Created(c, command)
}

// Starting asks for the network first: a deadline begins when both hold.
func (w warden) Starting(c *container.Container) error {
	if err := holdNetwork(c); err != nil {
		return err
	}
	return w.Client.Starting(c)
}

// Ended has the record written before the rules go with the container.
func (w warden) Ended(c *container.Container) error {
	if err := w.Client.Ended(c); err != nil {
		return err
	}
	return releaseNetwork(c)
}
