package main

import (
	"github.com/urfave/cli/v2"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
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
	return askEach(p, c, methods.RunPause, func(run api.RunParams) api.RunParams { return run })
}
