package main

import "github.com/urfave/cli/v2"

func (p *program) pauseCommand() *cli.Command {
	return &cli.Command{
		Name: "pause", Usage: "freeze every process of runs; their wall clock goes on", UsageText: "clove pause NAME|ID...",
		Action: p.pause,
	}
}

func (p *program) pause(c *cli.Context) error {
	if err := someReferences(c); err != nil {
		return err
	}
	d, err := p.cloved(c)
	if err != nil {
		return err
	}
	defer d.Close()
	return p.each(c, func(reference string) error { return d.Pause(c.Context, reference) })
}
