package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"clove.run/clove/rootfs"
)

func (p *program) diffCommand() *cli.Command {
	return &cli.Command{
		Name: "diff", Usage: "list the files that an ended run changed", UsageText: "clove diff [--json] NAME|ID",
		Description: "A added, C changed, D deleted. Files below /workspace are those that clove apply can write back.",
		Flags:       []cli.Flag{jsonFlag("write the changes as a JSON array")},
		Action:      p.diff,
	}
}

func (p *program) diff(c *cli.Context) error {
	reference, err := oneReference(c)
	if err != nil {
		return err
	}
	b, err := p.backend(c)
	if err != nil {
		return err
	}
	changes, err := b.Diff(reference)
	if err != nil {
		return err
	}
	return p.printChanges(c.Bool(flagJSON), changes)
}

func (p *program) printChanges(asJSON bool, changes []rootfs.Change) error {
	if asJSON {
		return p.printJSON(append([]rootfs.Change{}, changes...)) // [] for none, not null
	}
	for _, change := range changes {
		if _, err := fmt.Fprintln(p.out, change); err != nil {
			return err
		}
	}
	return nil
}
