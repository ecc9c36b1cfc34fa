package main

import (
	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

func inspectCommand() command {
	return command{
		task: "look", runs: completeAll, usage: "show all that is known of a run, as JSON",
		verbs: []verb{{line: "clove inspect NAME|ID", act: by(inspect)}},
		description: "One object: the spec with every default filled in, the state, and once the run has ended its record.\n" +
			"Values of the environment whose names say that they are secrets are redacted, as are passwords in URLs.",
	}
}

// inspect prints the run as it is stored, so that programs read the same with and
// without cloved.
func inspect(p program, c *cli.Context) error {
	run, err := p.stored(c, c.Args().First())
	if err != nil {
		return err
	}
	return p.printJSON(run)
}

// stored is a run as cloved or the store has it, without secrets.
func (a *access) stored(c *cli.Context, ref string) (agent.Run, error) {
	d, b, err := a.either(c)
	if err != nil {
		return agent.Run{}, err
	}
	if d == nil {
		run, err := b.Get(ref)
		return run.WithoutSecrets(), err // cloved does the same with its answer
	}
	defer d.Close()
	found, err := client.Do(c.Context, d, methods.RunGet, api.RunParams{Run: ref})
	return found.Run, err
}
