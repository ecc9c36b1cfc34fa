package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
)

func (p *program) waitCommand() *cli.Command {
	return &cli.Command{
		Name: "wait", Usage: "wait until runs have ended, and print their exit codes", UsageText: "clove wait [--json] NAME|ID...",
		Description: "A run that its restart policy or its schedule will start again has not ended. Exit status: that of the last one named.",
		Flags:       []cli.Flag{jsonFlag("write the exit records, one a line")},
		Action:      p.wait,
	}
}

func (p *program) wait(c *cli.Context) error {
	if err := someReferences(c); err != nil {
		return err
	}
	d, err := p.cloved(c)
	if err != nil {
		return err
	}
	defer d.Close()
	var last agent.Record
	for _, reference := range c.Args().Slice() {
		result, err := d.Wait(c.Context, reference)
		if err != nil {
			return err
		}
		if last = result.Record; c.Bool(flagJSON) {
			writeLine(p.out, last)
		} else {
			fmt.Fprintln(p.out, last.ExitCode)
		}
	}
	if last.ExitCode != 0 {
		return exitStatus(last.ExitCode)
	}
	return nil
}
