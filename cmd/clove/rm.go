package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
)

const flagForce = "force"

func (p *program) rmCommand() *cli.Command {
	return &cli.Command{
		Name: "rm", Usage: "forget ended runs: record, layer and name", UsageText: "clove rm [-f] NAME|ID...",
		Flags:  []cli.Flag{&cli.BoolFlag{Name: flagForce, Aliases: []string{"f"}, Usage: "kill a live one first (with cloved)", DisableDefaultText: true}},
		Action: p.rm,
	}
}

// rm goes on after a run that cannot be removed: the others were asked for too.
func (p *program) rm(c *cli.Context) error {
	if c.NArg() == 0 {
		return &agent.Error{Kind: agent.KindInvalid, Step: "rm", Message: "no run is named", Hint: "clove ps -a lists them"}
	}
	d, b, err := p.either(c)
	if err != nil {
		return err
	}
	if d == nil {
		return p.each(c, b.Remove)
	}
	defer d.Close()
	return p.each(c, func(reference string) error { return d.Remove(c.Context, reference, c.Bool(flagForce)) })
}

// each does one thing to every run that is named, and prints those that it
// could be done to.
func (p *program) each(c *cli.Context, do func(reference string) error) error {
	status := error(nil)
	for _, reference := range c.Args().Slice() {
		if err := do(reference); err != nil {
			p.report(err)
			status = exitStatus(exitFailed)
			continue
		}
		fmt.Fprintln(p.out, printable(reference))
	}
	return status
}
