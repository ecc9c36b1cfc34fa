package main

import (
	"github.com/urfave/cli/v2"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

func (p *program) renameCommand() *cli.Command {
	return &cli.Command{
		Name: "rename", Usage: "give a run that does not execute another name", UsageText: "clove rename NAME|ID NEW",
		Action: p.rename,
	}
}

// rename prints nothing: the caller knows the new name.
func (p *program) rename(c *cli.Context) error {
	if c.NArg() != 2 {
		return invalid("", "clove rename OLD NEW", "it takes two names, not %d", c.NArg())
	}
	d, err := p.cloved(c)
	if err != nil {
		return err
	}
	defer d.Close()
	_, err = client.Do(c.Context, d, methods.RunRename, api.RenameParams{RunParams: api.RunParams{Run: c.Args().Get(0)}, Name: c.Args().Get(1)})
	return err
}
