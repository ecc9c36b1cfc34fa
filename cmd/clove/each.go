package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/client"
)

// atOnce is how many runs a command acts on at the same time. A stop takes as long as
// the agent's grace period, so one after the other would add them up.
const atOnce = 16

// ofSomeRuns is the action of a command whose arguments name runs, at least one.
func ofSomeRuns(do cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		if c.NArg() == 0 {
			return &agent.Error{Kind: agent.KindInvalid, Step: c.Command.Name, Message: "no run is named", Hint: "clove ps -a lists them"}
		}
		return do(c)
	}
}

// askEach calls a method for every run that is named, with the parameters that of returns for it.
func askEach[P, R any](p *program, c *cli.Context, row api.Row[P, R], of func(run api.RunParams) P) error {
	return p.withEach(c, func(d *client.Client, run api.RunParams) error {
		_, err := client.Do(c.Context, d, row, of(run))
		return err
	})
}

// withEach lets cloved do one thing to every run that is named.
func (p *program) withEach(c *cli.Context, ask func(d *client.Client, run api.RunParams) error) error {
	return ofSomeRuns(p.withCloved(func(c *cli.Context, d *client.Client) error {
		return p.each(c, atOnce, func(reference string) error { return ask(d, api.RunParams{Run: reference}) })
	}))(c)
}

// each does one thing to every run that is named, at most width at the same time. It
// prints the names for which that succeeded, in the order in which they were given, and
// continues after one that fails.
func (p *program) each(c *cli.Context, width int, do func(reference string) error) error {
	references := c.Args().Slice()
	outcomes := make([]chan error, len(references))
	places := make(chan struct{}, width)
	for i := range references {
		// With room for the result, so that a run that is finished frees its place
		// although an earlier one is still printed.
		outcomes[i] = make(chan error, 1)
	}
	go func() {
		for i, reference := range references {
			// A place is taken before the goroutine starts, so that runs begin in the
			// order of their names.
			places <- struct{}{}
			go func() {
				outcomes[i] <- do(reference)
				<-places
			}()
		}
	}()
	var failed error
	for i, reference := range references {
		err := <-outcomes[i]
		if err == nil {
			_, err = fmt.Fprintln(p.out, printable(reference))
		}
		if err != nil {
			p.report(err)
			failed = exitStatus(exitFailed)
		}
	}
	return failed
}
