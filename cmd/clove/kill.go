package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/policies/build"
)

const (
	flagSignal = "signal"
	// policySignal is no signal of the Linux kernel's: it ends a run with status policy-kill.
	policySignal = "POLICY"
)

func (p *program) killCommand() *cli.Command {
	return &cli.Command{
		Name: "kill", Usage: "send runs a signal, KILL if no other is named", UsageText: "clove kill [-s SIGNAL] NAME|ID...\nclove kill -s POLICY [--reason TEXT] NAME|ID...",
		Description: "POLICY is clove's own: it kills every process of the run at once, as KILL does, and the record says policy-kill and why.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: flagSignal, Aliases: []string{"s"}, Usage: "name or number, for example HUP; or POLICY", Value: "KILL"},
			&cli.StringFlag{Name: flagReason, Usage: "of POLICY: why, for the record and the audit log", DefaultText: "who asked"},
		},
		Action: p.kill,
	}
}

// kill sends the signal and does not wait: only KILL is certain to end a run.
func (p *program) kill(c *cli.Context) error {
	reason := c.String(flagReason)
	if name := strings.TrimPrefix(strings.ToUpper(c.String(flagSignal)), "SIG"); name == policySignal {
		return askEach(p, c, methods.RunSignal, func(run api.RunParams) api.SignalParams {
			return api.SignalParams{RunParams: run, Policy: true, Reason: reason}
		})
	}
	if reason != "" {
		return invalid(flagReason, "omit it, or write -s "+policySignal, "only the signal %s has a reason", policySignal)
	}
	number, err := build.ParseSignal(flagSignal, c.String(flagSignal))
	if err != nil {
		return err
	}
	return askEach(p, c, methods.RunSignal, func(run api.RunParams) api.SignalParams { return api.SignalParams{RunParams: run, Signal: int(number)} })
}
