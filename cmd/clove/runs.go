package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

const flagForce = "force"

func rmCommand() command {
	return command{
		task: "change", runs: completeAll, usage: "forget ended runs: record, layer and name",
		verbs: []verb{{line: "clove rm [-f] NAME|ID...", act: each(methods.RunRemove).without(removeAlone)}},
		flags: []cli.Flag{&cli.BoolFlag{Name: flagForce, Aliases: []string{"f"}, Usage: "kill a live one first (with cloved)", DisableDefaultText: true}},
	}
}

// removeAlone removes runs of the store. No other process could end one.
func removeAlone(a *access, l *line, _ error) (func(api.RemoveParams) (api.Nothing, error), error) {
	b, err := a.ownStore(l.Context)
	if err == nil && l.Bool(flagForce) {
		err = &agent.Error{Kind: agent.KindConflict, Step: "--" + flagForce, Message: "cloved does not run, and only it can end a run",
			Hint: "start cloved, or omit --force"}
	}
	return func(params api.RemoveParams) (none api.Nothing, err error) { return none, b.Remove(params.Run) }, err
}

func renameCommand() command {
	return command{
		task: "change", runs: completeAll, usage: "give a run that does not execute another name",
		verbs: []verb{{line: "clove rename NAME|ID NEW", act: ask(methods.RunRename).shows(nothing[api.RunResult])}},
	}
}

// A prune asks for more confirmation than rm: it names no run, and removed runs cannot be restored.
func pruneCommand() command {
	return command{
		task: "change", usage: "remove all runs that have ended",
		verbs:       []verb{{line: "clove prune --yes", act: ask(methods.RunPrune).fills(agreed)}},
		description: "Records, layers, logs and names go; root removes everybody's. Prints the IDs.",
		flags:       []cli.Flag{&cli.BoolFlag{Name: flagYes, Aliases: []string{"y"}, Usage: "do it", DisableDefaultText: true}},
	}
}

func agreed(l *line, _ *api.Nothing) error {
	if !l.Bool(flagYes) {
		return invalid(flagYes, "look with clove ps -a, then give --yes", "every run that has ended would be removed")
	}
	return nil
}

func waitCommand() command {
	return command{
		task: "look", runs: completeLive, usage: "wait until runs have ended, and print their exit codes",
		verbs:       []verb{{line: "clove wait [--json] NAME|ID...", act: onCloved(waitFor)}},
		description: "A run that its restart policy or its schedule will start again has not ended. Exit status: that of the last one named; 1 if there is no such run.",
		flags:       []cli.Flag{jsonFlag("write the exit records, one a line")},
	}
}

// waitFor waits for one run after the other: the last to end decides how long it takes in
// any case, and the answers are in the order of the names.
func waitFor(s *screen, c *cli.Context, d *client.Client) error {
	// The last one named, as a shell's wait does.
	last := 0
	for _, reference := range c.Args().Slice() {
		result, err := client.Do(c.Context, d, methods.RunWait, api.RunParams{Run: reference})
		if err == nil {
			last = result.Record.ExitCode
			err = printEnd(s, c, result.Record)
		}
		if err != nil { // the other runs are still waited for
			s.report(err)
			last = exitFailed
		}
	}
	if last != 0 {
		return exitStatus(last)
	}
	return nil
}

// printEnd prints the exit code alone, as docker wait does.
func printEnd(s *screen, c *cli.Context, record agent.Record) error {
	if c.Bool(flagJSON) {
		return writeLine(s.out, record)
	}
	_, err := fmt.Fprintln(s.out, record.ExitCode)
	return err
}
