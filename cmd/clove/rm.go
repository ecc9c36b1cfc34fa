package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
)

func (p *program) rmCommand() *cli.Command {
	return &cli.Command{
		Name: "rm", Usage: "forget ended runs: record, layer and name", UsageText: "clove rm NAME|ID...",
		Action: p.rm,
	}
}

// rm goes on after a run that cannot be removed: the others were asked for too.
func (p *program) rm(c *cli.Context) error {
	if c.NArg() == 0 {
		return &agent.Error{Kind: agent.KindInvalid, Step: "rm", Message: "no run is named", Hint: "clove ps -a lists them"}
	}
	b, err := p.backend(c)
	if err != nil {
		return err
	}
	status := error(nil)
	for _, reference := range c.Args().Slice() {
		if err := b.Remove(reference); err != nil {
			p.report(err)
			status = exitStatus(exitFailed)
			continue
		}
		fmt.Fprintln(p.out, printable(reference))
	}
	return status
}
