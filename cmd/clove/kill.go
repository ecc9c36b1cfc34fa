package main

import (
	"github.com/urfave/cli/v2"

	"clove.run/clove/client"
	"clove.run/clove/policies/build"
)

const flagSignal = "signal"

func (p *program) killCommand() *cli.Command {
	return &cli.Command{
		Name: "kill", Usage: "send runs a signal, KILL if no other is named", UsageText: "clove kill [-s SIGNAL] NAME|ID...",
		Flags:  []cli.Flag{&cli.StringFlag{Name: flagSignal, Aliases: []string{"s"}, Usage: "name or number, for example HUP", Value: "KILL"}},
		Action: p.kill,
	}
}

// kill sends the signal and does not wait: only KILL is certain to end a run.
func (p *program) kill(c *cli.Context) error {
	number, err := build.ParseSignal(flagSignal, c.String(flagSignal))
	if err != nil {
		return err
	}
	return p.askEach(c, func(d *client.Client, reference string) error { return d.Signal(c.Context, reference, number) })
}
