package main

import (
	"errors"

	"github.com/urfave/cli/v2"
)

// refusedCommands are those of runc's that clove-oci knows and does not do. They
// take no flags, not even --help: with that one Podman asks whether they are there.
func (p *program) refusedCommands() []*cli.Command {
	refuse := func(name, usage string) *cli.Command {
		return &cli.Command{
			Name: name, Usage: usage, ArgsUsage: "ID", SkipFlagParsing: true,
			Action: func(*cli.Context) error {
				return errors.New("clove-oci does not " + name + " containers: between the two nobody would hold the agent's rules")
			},
		}
	}
	return []*cli.Command{
		refuse("checkpoint", "is refused: containers are not written to files"),
		refuse("restore", "is refused: containers are not made of files"),
	}
}
