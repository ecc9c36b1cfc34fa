package main

import (
	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

const flagForce = "force"

func (p *program) rmCommand() *cli.Command {
	return &cli.Command{
		Name: "rm", Usage: "forget ended runs: record, layer and name", UsageText: "clove rm [-f] NAME|ID...",
		Flags:  []cli.Flag{&cli.BoolFlag{Name: flagForce, Aliases: []string{"f"}, Usage: "kill a live one first (with cloved)", DisableDefaultText: true}},
		Action: ofSomeRuns(p.rm),
	}
}

// rm continues after a run that cannot be removed: the others were asked for too.
func (p *program) rm(c *cli.Context) error {
	d, b, err := p.either(c)
	if err != nil {
		return err
	}
	if d == nil {
		if c.Bool(flagForce) {
			return &agent.Error{Kind: agent.KindConflict, Step: "--" + flagForce, Message: "cloved does not run, and only it can end a run",
				Hint: "start cloved, or omit --force"}
		}
		return p.each(c, 1, b.Remove)
	}
	defer d.Close()
	return p.each(c, atOnce, func(reference string) error {
		return client.Perform(c.Context, d, methods.RunRemove, api.RemoveParams{RunParams: api.RunParams{Run: reference}, Force: c.Bool(flagForce)})
	})
}
