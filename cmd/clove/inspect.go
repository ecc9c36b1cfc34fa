package main

import (
	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
)

func (p *program) inspectCommand() *cli.Command {
	return &cli.Command{
		Name: "inspect", Usage: "show all that is known of a run, as JSON", UsageText: "clove inspect NAME|ID",
		Description: "One object: the spec with every default filled in, the state, and once the run has ended its record.\n" +
			"Values of the environment whose names say that they are secrets are redacted, as are passwords in URLs.",
		Action: ofOneRun(p.inspect),
	}
}

// inspect prints the run as it is stored, so that programs read the same with and
// without cloved.
func (p *program) inspect(c *cli.Context) error {
	d, b, err := p.either(c)
	if err != nil {
		return err
	}
	var run agent.Run
	if d != nil {
		defer d.Close()
		var found api.RunResult
		found, err = d.Get(c.Context, c.Args().First())
		run = found.Run
	} else {
		run, err = b.Get(c.Args().First())
		// cloved has done the same with its answer.
		run = run.WithoutSecrets()
	}
	if err != nil {
		return err
	}
	return p.printJSON(run)
}
