package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/audit"
	"clove.run/clove/client"
)

const flagClear = "clear"

func (p *program) panicCommand() *cli.Command {
	return &cli.Command{
		Name: "panic", Usage: "end all agents at once, and let nothing start", UsageText: "clove panic REASON\nclove panic --clear",
		Description: "Kills every agent of this installation, whoever owns it, without grace. Until --clear nothing starts, also\n" +
			"after a restart of the host; new runs wait in cloved's queue. For root only.",
		Flags:  []cli.Flag{&cli.BoolFlag{Name: flagClear, Usage: "let runs start again", DisableDefaultText: true}},
		Action: p.panic,
	}
}

// panic asks cloved, which writes the audit log, and does it itself where none runs.
func (p *program) panic(c *cli.Context) error {
	reason, clear := c.Args().First(), c.Bool(flagClear)
	if clear == (c.NArg() > 0) || c.NArg() > 1 || !clear && reason == "" {
		return invalid("", `clove panic "why", or clove panic --clear`, "say why in one argument")
	}
	d, b, err := p.either(c)
	if err != nil {
		return err
	}
	var ended []string
	if d != nil {
		defer d.Close()
		var answer api.PanicResult
		answer, err = client.Do(c.Context, d, methods.Panic, api.PanicParams{Reason: reason, Clear: clear})
		ended = answer.Ended
	} else {
		ended, err = p.panicHere(c, b, reason, clear)
	}
	for _, name := range ended {
		if _, err := fmt.Fprintln(p.out, printable(name)); err != nil {
			return err
		}
	}
	return err
}

// panicHere ends the agents first: the log comes after what cannot wait.
func (p *program) panicHere(c *cli.Context, b backend, reason string, clear bool) (ended []string, err error) {
	var runs []agent.Run
	if clear {
		err = b.ClearPanic()
	} else {
		runs, err = b.Panic(reason)
	}
	for _, run := range runs {
		ended = append(ended, run.Name().String())
	}
	paths, perr := directories(c)
	if perr != nil {
		return ended, errors.Join(err, perr)
	}
	log, lerr := audit.Open(audit.Dir(paths.State), audit.Options{})
	if lerr != nil {
		return ended, errors.Join(err, lerr)
	}
	_, lerr = log.AppendEnd(audit.PanicEntry(0, reason, len(runs)))
	return ended, errors.Join(err, lerr, log.Close())
}
