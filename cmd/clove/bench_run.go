package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	results "clove.run/clove/bench"
	"clove.run/clove/bench/machine"
	"clove.run/clove/bench/plan"
	"clove.run/clove/bench/run"
	"clove.run/clove/bench/suite"
)

// benchRun runs what a suite asks for.
func (p *program) benchRun(c *cli.Context) error {
	h, err := p.host()
	if err != nil {
		return err
	}
	s, err := suite.Load(h.Absolute(c.Args().Get(1)))
	if err != nil {
		return err
	}
	attempts := plan.All(s)
	r := &run.Runner{Suite: s, Host: h, Dir: h.Absolute(c.String(flagResults)), Sandboxes: &benchSandboxes{p, c}, Memory: machine.Available() / 5 * 4}
	if err := os.MkdirAll(filepath.Join(r.Dir, results.AttemptsDir), 0o755); err != nil {
		return err
	}
	m, err := r.Manifest(len(attempts))
	if err != nil {
		return err
	}
	m.Noise = append(m.Noise, machine.Measure("before"))
	if err := results.WriteManifest(r.Dir, m); err != nil {
		return err
	}
	// A second signal ends the agents at once: runtime gets it too.
	ctx, stop := signal.NotifyContext(c.Context, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	defer stop()
	r.Done = func(result results.Result) { p.say("bench", cyan, result.Attempt+": "+string(result.Outcome)+" "+result.Cause) }
	return p.benchEnd(ctx, r, m, attempts)
}

func (p *program) benchEnd(ctx context.Context, r *run.Runner, m results.Manifest, attempts []plan.Attempt) error {
	err := r.Run(ctx, attempts)
	m.Noise = append(m.Noise, machine.Measure("after"))
	if err == nil {
		m.Ended = time.Now().UTC()
	}
	if werr := results.WriteManifest(r.Dir, m); werr != nil {
		return errors.Join(err, werr)
	}
	_, _ = fmt.Fprintln(p.out, r.Dir)
	return err
}
