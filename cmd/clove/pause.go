package main

import (
	"github.com/urfave/cli/v2"

	"clove.run/clove/client"
)

func (p *program) pauseCommand() *cli.Command {
	return &cli.Command{
		Name: "pause", Usage: "freeze every process of runs; their wall clock goes on", UsageText: "clove pause NAME|ID...",
		Action: p.pause,
	}
}

// pause uses the kernel's freezer, which a process can neither notice nor refuse. The
// deadline goes on: a paused run may time out.
func (p *program) pause(c *cli.Context) error {
	return p.askEach(c, func(d *client.Client, reference string) error { return d.Pause(c.Context, reference) })
}
