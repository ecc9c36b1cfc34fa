package main

import (
	"errors"

	"github.com/urfave/cli/v2"
)

// refusedCommands are those of runc's commands that clove-oci does not support. They
// take no flags, not even --help: Podman calls `checkpoint --help` to find out whether
// a runtime supports checkpoints, and that call must fail.
func (p *program) refusedCommands() []*cli.Command {
	refuse := func(name, usage string) *cli.Command {
		return &cli.Command{
			Name: name, Usage: usage, ArgsUsage: "ID", SkipFlagParsing: true,
			Action: func(*cli.Context) error {
				return errors.New("clove-oci does not " + name + " containers: between checkpoint and restore nothing would enforce the agent's limits")
			},
		}
	}
	return []*cli.Command{
		refuse("checkpoint", "is refused: containers are not written to files"),
		refuse("restore", "is refused: containers are not made of files"),
	}
}
