package main

import (
	"github.com/urfave/cli/v2"
)

const flagOff = "off"

func (p *program) drainCommand() *cli.Command {
	return &cli.Command{
		Name: "drain", Usage: "have cloved start nothing, before maintenance", UsageText: "clove drain [--off]",
		Description: "Live runs go on; what is started waits in the queue, restarts and schedules too. It holds until\n--off, or until cloved is restarted. Root only.",
		Flags:       []cli.Flag{&cli.BoolFlag{Name: flagOff, Usage: "start again what waits"}},
		Action:      p.drain,
	}
}

func (p *program) drain(c *cli.Context) error {
	if err := noArguments(c); err != nil {
		return err
	}
	d, err := p.cloved(c)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Drain(c.Context, !c.Bool(flagOff))
}
