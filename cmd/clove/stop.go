package main

import (
	"github.com/urfave/cli/v2"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/policies/build"
)

const flagTime = "time"

func (p *program) stopCommand() *cli.Command {
	return &cli.Command{
		Name: "stop", Usage: "end runs: TERM, a grace, then KILL", UsageText: "clove stop [-t DUR] NAME|ID...",
		Description: "Returns when they have ended. Restart policy and schedule rest until clove restart.",
		Flags:       []cli.Flag{graceFlag()},
		Action:      p.stop,
	}
}

// graceFlag has no default of its own: the run's --stop-timeout holds.
func graceFlag() cli.Flag {
	return &cli.StringFlag{Name: flagTime, Aliases: []string{"t"}, Usage: "time between TERM and KILL", DefaultText: "the run's --stop-timeout"}
}

// grace is in nanoseconds, and nil if no time was given. 0 is KILL at once.
func grace(c *cli.Context) (*int64, error) {
	text := c.String(flagTime)
	if text == "" {
		return nil, nil
	}
	if text == "0" {
		return new(int64), nil
	}
	d, err := build.ParseClock(flagTime, text)
	return new(int64(d)), err
}

// stop returns when the runs have ended. A caller that leaves earlier cancels nothing:
// the request is stored by cloved.
func (p *program) stop(c *cli.Context) error {
	patience, err := grace(c)
	if err != nil {
		return err
	}
	return askEach(p, c, methods.RunStop, func(run api.RunParams) api.StopParams { return api.StopParams{RunParams: run, GraceNS: patience} })
}
