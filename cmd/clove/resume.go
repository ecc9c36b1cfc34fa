package main

import "github.com/urfave/cli/v2"

func (p *program) resumeCommand() *cli.Command {
	return &cli.Command{
		Name: "resume", Usage: "let paused runs go on", UsageText: "clove resume NAME|ID...",
		Action: p.resume,
	}
}

func (p *program) resume(c *cli.Context) error {
	if err := someReferences(c); err != nil {
		return err
	}
	d, err := p.cloved(c)
	if err != nil {
		return err
	}
	defer d.Close()
	return p.each(c, func(reference string) error { return d.Resume(c.Context, reference) })
}
