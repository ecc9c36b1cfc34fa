package main

import (
	"bufio"
	"cmp"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/runtime"
)

const flagLost = "lost"

func gcCommand() command {
	return command{
		task: "administer", usage: "remove what a killed clove left behind",
		verbs: []verb{{line: "clove gc [--json]\nclove gc --lost [--yes] [--json]", act: by(collectGarbage)}},
		description: "Prints what it removed, templates of layers that no run used for a month included. A run that is alive\n" +
			"is ended only if its run directory was removed, so that no client can reach it. Things that clove\ndid not make are never touched.\n" +
			"Layers and logs that the store has no record of are moved to lost/ in the state directory. --lost removes what\nis there, after a question.",
		flags: []cli.Flag{
			&cli.BoolFlag{Name: flagLost, Usage: "remove layers and logs that have no record, and nothing else", DisableDefaultText: true},
			&cli.BoolFlag{Name: flagYes, Aliases: []string{"y"}, Usage: "do not ask", DisableDefaultText: true},
			jsonFlag("write what was removed as a JSON array"),
		},
	}
}

// collectGarbage prints what was removed even if something else could not be removed.
func collectGarbage(p program, c *cli.Context) error {
	if c.Bool(flagYes) && !c.Bool(flagLost) {
		return invalid(flagYes, "omit it: only --"+flagLost+" asks", "nothing is asked")
	}
	b, err := p.backend(c)
	if err != nil {
		return err
	}
	remove, asked := b.GC, time.Now()
	if c.Bool(flagLost) {
		agreed, err := agreesToLose(p.screen, c, b)
		if err != nil || !agreed {
			return err
		}
		remove = func() ([]runtime.Problem, error) { return b.RemoveLost(asked) }
	}
	removed, failure := remove()
	if !c.Bool(flagLost) {
		files, err := b.SweepKernel()
		for _, file := range files {
			removed = append(removed, runtime.Problem{Kind: runtime.ProblemStore, Subject: file, Message: "no blob has this file"})
		}
		if agent.KindOf(err) != agent.KindBusy { // else cloved does it
			failure = cmp.Or(failure, err)
		}
	}
	if err := printProblems(p.screen, c.Bool(flagJSON), removed); err != nil {
		return err
	}
	return failure
}

// agreesToLose shows what is below lost/ and asks. Layers that come there later
// stay.
func agreesToLose(s *screen, c *cli.Context, b backend) (bool, error) {
	found := b.Lost()
	switch {
	case len(found) == 0, c.Bool(flagYes):
		return true, nil
	case !isTerminal(s.in):
		return false, invalid(flagYes, "look with clove check, then give --yes", "there is no terminal to ask on")
	}
	for _, problem := range found {
		fmt.Fprintf(s.err, "%s: %s\n", problem.Subject, problem.Message)
	}
	if yes(s, bufio.NewReader(s.in), fmt.Sprintf("remove %d for good?", len(found))) {
		return true, nil
	}
	s.say("clove", cyan, "nothing was removed")
	return false, exitStatus(exitFailed)
}
