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
	"clove.run/clove/policies/build"
)

const superviseName = "supervise"

const flagEnd = "end"

// superviseCommand is cloved's, which starts one for each agent, and with --end
// clove-agents.service's, whose end is the host's.
func (p *program) superviseCommand() *cli.Command {
	return &cli.Command{
		Name: superviseName, Usage: "look after one detached run; cloved starts it", UsageText: "clove supervise\nclove supervise --end DUR", Hidden: true,
		Flags: []cli.Flag{&cli.StringFlag{Name: flagEnd, Usage: "end all detached runs instead, each with at most this time between TERM and KILL, " +
			"and let their restart policies stand"}},
		Action: withoutArguments(p.supervise),
	}
}

func (p *program) supervise(c *cli.Context) error {
	if c.String(flagEnd) != "" {
		return p.endAll(c)
	}
	order, err := supervisor.ReadOrder(os.NewFile(lasting.OrderFD, "order"))
	if err != nil {
		return err
	}
	b, err := p.backend(c)
	if err != nil {
		return err
	}
	return supervisor.Supervise(c.Context, b, c.String(flagRunDir), order, os.NewFile(lasting.AnswerFD, "answer"))
}

// endAll ends what supervisors look after, all at once: a shutdown waits for
// the slowest of them only.
func (p *program) endAll(c *cli.Context) error {
	longest, err := build.ParseClock(flagEnd, c.String(flagEnd))
	if err != nil {
		return err
	}
	b, err := p.backend(c)
	if err != nil {
		return err
	}
	runs, err := b.List()
	if err != nil {
		return err
	}
	// What follows the grace: KILL, the record, the last words.
	ctx, cancel := context.WithTimeout(c.Context, longest+endTime)
	defer cancel()
	var all sync.WaitGroup
	failures := make([]error, len(runs))
	for i, run := range runs {
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

const endTime = 10 * time.Second
