package main

import (
	"os"

	"github.com/urfave/cli/v2"

	"clove.run/clove/daemon/supervisor"
)

const superviseName = "supervise"

// superviseCommand is cloved's: it starts one for each agent.
func (p *program) superviseCommand() *cli.Command {
	return &cli.Command{
		Name: superviseName, Usage: "look after one detached run; cloved starts it", UsageText: "clove supervise", Hidden: true,
		Action: p.supervise,
	}
}

func (p *program) supervise(c *cli.Context) error {
	if err := noArguments(c); err != nil {
		return err
	}
	order, err := supervisor.ReadOrder(os.NewFile(supervisor.OrderFD, "order"))
	if err != nil {
		return err
	}
	b, err := p.backend(c)
	if err != nil {
		return err
	}
	return supervisor.Supervise(c.Context, b, c.String(flagRunDir), order, os.NewFile(supervisor.AnswerFD, "answer"))
}
