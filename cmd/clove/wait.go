package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

func (p *program) waitCommand() *cli.Command {
	return &cli.Command{
		Name: "wait", Usage: "wait until runs have ended, and print their exit codes", UsageText: "clove wait [--json] NAME|ID...",
		Description: "A run that its restart policy or its schedule will start again has not ended. Exit status: that of the last one named; 1 if there is no such run.",
		Flags:       []cli.Flag{jsonFlag("write the exit records, one a line")},
		Action:      ofSomeRuns(p.withCloved(p.wait)),
	}
}

// wait waits for one run after the other: the last to end decides how long it takes in
// any case, and the answers are in the order of the names.
func (p *program) wait(c *cli.Context, d *client.Client) error {
	// The last one named, as a shell's wait does.
	last := 0
	for _, reference := range c.Args().Slice() {
		result, err := client.Do(c.Context, d, methods.RunWait, api.RunParams{Run: reference})
		if err == nil {
			last = result.Record.ExitCode
			err = p.printEnd(c, result.Record)
		}
		if err != nil { // the other runs are still waited for
			p.report(err)
			last = exitFailed
		}
	}
	if last != 0 {
		return exitStatus(last)
	}
	return nil
}

// printEnd prints the exit code alone, as docker wait does.
func (p *program) printEnd(c *cli.Context, record agent.Record) error {
	if c.Bool(flagJSON) {
		return writeLine(p.out, record)
	}
	_, err := fmt.Fprintln(p.out, record.ExitCode)
	return err
}
