package main

import (
	"github.com/urfave/cli/v2"

	"clove.run/clove/client"
)

const flagFresh = "fresh"

func (p *program) restartCommand() *cli.Command {
	return &cli.Command{
		Name: "restart", Usage: "end runs that live, and start them again", UsageText: "clove restart [-t DUR] [--fresh] NAME|ID...",
		Description: "A run keeps its id, name, log and the files that it wrote. One that waits is started now. Restart policy\n" +
			"and schedule hold again.",
		Flags: []cli.Flag{graceFlag(),
			&cli.BoolFlag{Name: flagFresh, Usage: "begin with a new layer: what the agent wrote is lost", DisableDefaultText: true}},
		Action: p.restart,
	}
}

// restart of a queued run means that it starts now.
func (p *program) restart(c *cli.Context) error {
	patience, err := grace(c)
	if err != nil {
		return err
	}
	return p.askEach(c, func(d *client.Client, reference string) error {
		again := d.Restart
		if c.Bool(flagFresh) {
			again = d.RestartFresh
		}
		result, err := again(c.Context, reference, patience)
		if err == nil && result.Reason != "" {
			p.say("clove", cyan, reference+" waits: "+result.Reason)
		}
		return err
	})
}
