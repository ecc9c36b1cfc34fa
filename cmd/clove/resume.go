package main

import (
	"github.com/urfave/cli/v2"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

func (p *program) resumeCommand() *cli.Command {
	return &cli.Command{
		Name: "resume", Usage: "let paused runs go on", UsageText: "clove resume NAME|ID...",
		Action: p.resume,
	}
}

// resume is an error for a run that is not paused: somebody else may have resumed it.
func (p *program) resume(c *cli.Context) error {
	return askEach(p, c, methods.RunResume, func(run api.RunParams) api.RunParams { return run })
}
