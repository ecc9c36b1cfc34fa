package main

import (
	"fmt"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
)

func (p *program) backupCommand() *cli.Command {
	return &cli.Command{
		Name: "backup", Usage: "write a sound copy of the records to a file", UsageText: "clove backup FILE",
		Description: "While everything runs. The layers of ended runs and the logs are not in it: they are files\n" +
			"below --root. To go back, stop cloved and the agents and put the copy in the place of clove.db.",
		Action: p.backup,
	}
}

func (p *program) backup(c *cli.Context) error {
	if c.NArg() != 1 || c.Args().First() == "" {
		return &agent.Error{Kind: agent.KindInvalid, Step: "backup", Message: fmt.Sprintf("it takes one file, not %d", c.NArg()), Hint: "clove backup FILE"}
	}
	to, err := filepath.Abs(c.Args().First())
	if err != nil {
		return err
	}
	b, err := p.backend(c)
	if err != nil {
		return err
	}
	return b.Backup(to)
}
