package main

import (
	"github.com/urfave/cli/v2"

	"clove.run/clove/client"
)

const flagUndo = "undo"

func (p *program) drainCommand() *cli.Command {
	return &cli.Command{
		Name: "drain", Usage: "let cloved start nothing more, for maintenance", UsageText: "clove drain [--undo]",
		Description: "What runs goes on; what is asked for, restarts and schedules wait in the queue, also across a restart of\n" +
			"cloved or of the host. Runs in the foreground are not cloved's, and start.",
		Flags:  []cli.Flag{&cli.BoolFlag{Name: flagUndo, Usage: "start again what waits", DisableDefaultText: true}},
		Action: withoutArguments(p.withCloved(p.drain)),
	}
}

// drain is stored by cloved, so it outlives a restart of cloved and of the host.
func (p *program) drain(c *cli.Context, d *client.Client) error {
	return d.Drain(c.Context, !c.Bool(flagUndo))
}
