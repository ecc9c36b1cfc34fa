package main

import (
	"github.com/urfave/cli/v2"

	"clove.run/clove/client"
)

func (p *program) restartCommand() *cli.Command {
	return &cli.Command{
		Name: "restart", Usage: "end runs that live, and start them again", UsageText: "clove restart [-t DUR] NAME|ID...",
		Description: "A run keeps its id, name and log; its writable layer begins anew. One that waits is started now.",
		Flags:       []cli.Flag{graceFlag()},
		Action:      p.restart,
	}
}

func (p *program) restart(c *cli.Context) error {
	patience, err := grace(c)
	if err != nil {
		return err
	}
	return p.askEach(c, func(d *client.Client, reference string) error {
		result, err := d.Restart(c.Context, reference, patience)
		if err == nil && result.Reason != "" {
			p.say("clove", cyan, reference+" waits: "+result.Reason)
		}
		return err
	})
}
