package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/daemon/supervisor"
	"clove.run/clove/internal/lasting"
	"clove.run/clove/policies/settings"
)

const flagEnd = "end"

// superviseCommand is started by cloved, one process for each detached run.
// clove-agents.service calls it with --end when the host shuts down.
func superviseCommand() command {
	return command{
		usage: "supervise one detached run; cloved starts it",
		verbs: []verb{{line: "clove supervise\nclove supervise --end DUR", act: reaches(supervise)}},
		flags: []cli.Flag{&cli.StringFlag{Name: flagEnd, Usage: "end all detached runs instead, each with at most this time between TERM and KILL, " +
			"and keep their restart policies"}},
	}
}

// supervise reads its order, with the spec, from one pipe and answers on another
// (internal/lasting).
func supervise(a *access, c *cli.Context) error {
	if c.String(flagEnd) != "" {
		return endAll(a, c)
	}
	order, err := supervisor.ReadOrder(os.NewFile(lasting.OrderFD, "order"))
	if err != nil {
		return err
	}
	b, err := a.backend(c)
	if err != nil {
		return err
	}
	return supervisor.Supervise(c.Context, b, c.String(flagRunDir), order, os.NewFile(lasting.AnswerFD, "answer"))
}

// endAll ends all detached runs at once: a shutdown then waits only for the slowest.
func endAll(a *access, c *cli.Context) error {
	longest, err := settings.ParseClock(flagEnd, c.String(flagEnd))
	if err != nil {
		return err
	}
	b, err := a.backend(c)
	if err != nil {
		return err
	}
	runs, err := b.List()
	if err != nil {
		return err
	}
	// After the grace period come KILL, the record and the last output.
	ctx, cancel := context.WithTimeout(c.Context, longest+endTime)
	defer cancel()
	var all sync.WaitGroup
	failures := make([]error, len(runs))
	for i, run := range runs {
		// No lease, no processes.
		if run.Lease == nil {
			continue
		}
		all.Go(func() {
			if err := supervisor.End(ctx, c.String(flagRunDir), run.Spec.ID, min(run.Spec.Limits.StopGrace, longest)); err != nil {
				failures[i] = &agent.Error{Step: "end", Message: fmt.Sprintf("cannot end %s", shown(run.Name())), Err: err}
			}
		})
	}
	all.Wait()
	return errors.Join(failures...)
}

// endTime is added to the longest grace period.
const endTime = 10 * time.Second
