package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

func (p *program) pruneCommand() *cli.Command {
	return &cli.Command{
		Name: "prune", Usage: "remove all runs that have ended", UsageText: "clove prune --yes",
		Description: "Records, layers, logs and names go; root removes everybody's. Prints the IDs.",
		Flags:       []cli.Flag{&cli.BoolFlag{Name: flagYes, Aliases: []string{"y"}, Usage: "do it", DisableDefaultText: true}},
		Action:      withoutArguments(p.prune),
	}
}

// prune asks for more confirmation than rm: it names no run, and removed runs cannot be
// restored. What was removed before a failure is printed all the same.
func (p *program) prune(c *cli.Context) error {
	if !c.Bool(flagYes) {
		return invalid(flagYes, "look with clove ps -a, then give --yes", "every run that has ended would be removed")
	}
	d, err := p.cloved(c)
	if err != nil {
		return err
	}
	defer d.Close()
	result, err := client.Do(c.Context, d, methods.RunPrune, api.Nothing{})
	for _, id := range result.Removed {
		fmt.Fprintln(p.out, id)
	}
	return err
}
