package main

import (
	"github.com/urfave/cli/v2"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

const flagUndo = "undo"

func (p *program) drainCommand() *cli.Command {
	return &cli.Command{
		Name: "drain", Usage: "make cloved start no more runs, for maintenance", UsageText: "clove drain [--undo]",
		Description: "Running agents continue. New runs, restarts and schedules wait in the queue, also after a restart of\n" +
			"cloved or of the host. Runs of root's in the foreground do not go through cloved, and start.",
		Flags:  []cli.Flag{&cli.BoolFlag{Name: flagUndo, Usage: "let cloved start runs again", DisableDefaultText: true}},
		Action: withoutArguments(p.withCloved(p.drain)),
	}
}

// drain is stored by cloved, so it outlives a restart of cloved and of the host.
func (p *program) drain(c *cli.Context, d *client.Client) error {
	return client.Perform(c.Context, d, methods.Drain, api.DrainParams{On: !c.Bool(flagUndo)})
}
