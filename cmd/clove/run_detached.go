package main

import (
	"fmt"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/policies/settings"
)

// detach gives the run to cloved and prints its ID alone on stdout, for scripts. Why a
// run waits goes to stderr.
func (p launcher) detach(c *cli.Context, spec agent.Spec) error {
	// The delay is no part of the spec: it holds for this start and not for a restart.
	var delay time.Duration
	if text := c.String(flagDelay); text != "" {
		var err error
		if delay, err = settings.ParseClock(flagDelay, text); err != nil {
			return err
		}
	}
	d, err := p.cloved(c)
	if err != nil {
		return err
	}
	defer d.Close()
	// A TRACEPARENT in the environment (W3C Trace Context) makes the run's spans a part
	// of the caller's trace.
	result, err := client.Do(c.Context, d, methods.RunStart, api.StartParams{Spec: spec, DelayNS: int64(delay), Traceparent: os.Getenv("TRACEPARENT")})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(p.out, spec.ID); err != nil {
		return err
	}
	if result.Reason != "" {
		p.say("clove", cyan, spec.Name+" waits: "+result.Reason)
	}
	return nil
}
