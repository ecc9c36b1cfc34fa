package main

import "github.com/urfave/cli/v2"

func (p *program) gcCommand() *cli.Command {
	return &cli.Command{
		Name: "gc", Usage: "remove what a killed clove left behind", UsageText: "clove gc [--json]",
		Description: "Prints what it removed, templates of layers that no run used for a month included. A run that is alive\n" +
			"is ended only if its run directory was removed, so that nobody can reach it. What clove did not make is\nnever touched.",
		Flags:  []cli.Flag{jsonFlag("write what was removed as a JSON array")},
		Action: withoutArguments(p.gc),
	}
}

// gc prints what was removed even if something else could not be removed.
func (p *program) gc(c *cli.Context) error {
	b, err := p.backend(c)
	if err != nil {
		return err
	}
	removed, failure := b.GC()
	if err := p.printProblems(c.Bool(flagJSON), removed); err != nil {
		return err
	}
	return failure
}
