package main

import (
	"fmt"

	"github.com/urfave/cli/v2"
)

// atOnce is how many runs a command acts on at the same time. A stop takes as long as
// the agent's grace period, so one after the other would add them up.
const atOnce = 16

// each does one thing to every run that is named, at most width at the same time. It
// prints the names for which that succeeded, in the order in which they were given, and
// continues after one that fails.
func (s *screen) each(c *cli.Context, width int, do func(reference string) error) error {
	references := c.Args().Slice()
	outcomes := make([]chan error, len(references))
	places := make(chan struct{}, width)
	for i := range references {
		// Buffered for the result, so that a run that is finished frees its place
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
			_, err = fmt.Fprintln(s.out, printable(reference))
		}
		if err != nil {
			s.report(err)
			failed = exitStatus(exitFailed)
		}
	}
	return failed
}
