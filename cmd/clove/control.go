package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/policies/settings"
)

const (
	flagSignal = "signal"
	flagTime   = "time"
	flagFresh  = "fresh"
	// These are no signals of the Linux kernel's: they end a run with status policy-kill or budget.
	policySignal = "POLICY"
	budgetSignal = "BUDGET"
)

// A stop returns when the runs have ended. A caller that leaves earlier cancels nothing: the request is
// stored by cloved.
func stopCommand() command {
	return command{
		task: "change", runs: completeLive, usage: "end runs: TERM, a grace, then KILL",
		verbs:       []verb{{line: "clove stop [-t DUR] NAME|ID...", act: each(methods.RunStop)}},
		description: "Returns when they have ended. Restart policy and schedule rest until clove restart.",
		flags:       []cli.Flag{graceFlag()},
	}
}

// A kill sends the signal and does not wait: only KILL is certain to end a run.
func killCommand() command {
	return command{
		task: "change", runs: completeLive, usage: "send runs a signal, KILL if no other is named",
		verbs: []verb{{line: "clove kill [-s SIGNAL] NAME|ID...\nclove kill -s POLICY|BUDGET [--reason TEXT] NAME|ID...",
			act: each(methods.RunSignal).fills(fillSignal)}},
		description: "POLICY and BUDGET are clove's own: they kill every process of the run at once, as KILL does, and the record says\n" +
			"policy-kill or budget, and why.",
		flags: []cli.Flag{
			&cli.StringFlag{Name: flagSignal, Aliases: []string{"s"}, Usage: "name or number, for example HUP; or POLICY or BUDGET", Value: "KILL"},
			&cli.StringFlag{Name: flagReason, Usage: "of POLICY and BUDGET: why, for the record and the audit log", DefaultText: "who asked"},
		},
	}
}

// A pause uses the kernel's freezer, which a process can neither notice nor refuse. The deadline goes on:
// a paused run may time out.
func pauseCommand() command {
	return command{
		task: "change", runs: completeLive, usage: "freeze every process of runs; their wall clock goes on",
		verbs: []verb{{line: "clove pause NAME|ID...", act: each(methods.RunPause)}},
	}
}

func resumeCommand() command {
	return command{
		task: "change", runs: completeLive, usage: "let paused runs go on",
		verbs: []verb{{line: "clove resume NAME|ID...", act: each(methods.RunResume)}},
	}
}

// A restart of a queued run means that it starts now.
func restartCommand() command {
	return command{
		task: "change", runs: completeAll, usage: "end runs that live, and start them again",
		verbs: []verb{{line: "clove restart [-t DUR] [--fresh] NAME|ID...", act: each(methods.RunRestart).shows(sayWaits)}},
		description: "A run keeps its id, name, log and the files that it wrote. One that waits is started now. Restart policy\n" +
			"and schedule hold again.",
		flags: []cli.Flag{graceFlag(),
			&cli.BoolFlag{Name: flagFresh, Usage: "begin with a new layer: what the agent wrote is lost", DisableDefaultText: true}},
	}
}

func sayWaits(s *screen, l *line, result api.RunResult) error {
	if result.Reason != "" {
		s.say("clove", cyan, l.args[0]+" waits: "+result.Reason)
	}
	return nil
}

// graceFlag has no default of its own: the run's --stop-timeout holds.
func graceFlag() cli.Flag {
	return &cli.StringFlag{Name: flagTime, Aliases: []string{"t"}, Usage: "time between TERM and KILL", DefaultText: "the run's --stop-timeout"}
}

// readGrace returns nanoseconds. 0 is KILL at once.
func readGrace(text string) (int64, error) {
	if text == "0" {
		return 0, nil
	}
	d, err := settings.ParseClock(flagTime, text)
	return int64(d), err
}

func fillSignal(l *line, params *api.SignalParams) error {
	text := l.String(flagSignal)
	switch strings.TrimPrefix(strings.ToUpper(text), "SIG") {
	case policySignal:
		params.Policy = true
		return nil
	case budgetSignal:
		params.Budget = true
		return nil
	}
	if params.Reason != "" {
		return invalid(flagReason, "omit it, or write -s "+policySignal, "only the signals %s and %s have a reason", policySignal, budgetSignal)
	}
	number, err := settings.ParseSignal(flagSignal, text)
	params.Signal = int(number)
	return err
}

// atOnce is how many runs a command acts on at the same time. A stop takes as long as
// the agent's grace period, so one after the other would add them up.
const atOnce = 16

// each does one thing to every run that is named, at most width at the same time. It
// prints the names for which that succeeded, in the order in which they were given, and
// continues after one that fails.
func (s *screen) each(c *cli.Context, width int, do func(reference string) error) error {
	references := c.Args().Slice()
	outcomes := make([]chan error, len(references))
	places := make(chan struct{}, width)
	for i := range references {
		// Buffered for the result, so that a run that is finished frees its place
		// although an earlier one is still printed.
		outcomes[i] = make(chan error, 1)
	}
	go func() {
		for i, reference := range references {
			// A place is taken before the goroutine starts, so that runs begin in the
			// order of their names.
			places <- struct{}{}
			go func() {
				outcomes[i] <- do(reference)
				<-places
			}()
		}
	}()
	var failed error
	for i, reference := range references {
		err := <-outcomes[i]
		if err == nil {
			_, err = fmt.Fprintln(s.out, printable(reference))
		}
		if err != nil {
			s.report(err)
			failed = exitStatus(exitFailed)
		}
	}
	return failed
}
