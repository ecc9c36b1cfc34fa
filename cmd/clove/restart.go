package main

import (
	"github.com/urfave/cli/v2"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
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
	return p.withEach(c, func(d *client.Client, run api.RunParams) error {
		stop := api.StopParams{RunParams: run, GraceNS: patience}
		result, err := client.Do(c.Context, d, methods.RunRestart, api.RestartParams{StopParams: stop, Fresh: c.Bool(flagFresh)})
		if err == nil && result.Reason != "" {
			p.say("clove", cyan, run.Run+" waits: "+result.Reason)
		}
		return err
	})
}
