package main

import (
	"errors"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/audit"
)

const (
	flagUndo  = "undo"
	flagClear = "clear"
)

// A drain is stored by cloved, so it outlives a restart of cloved and of the host.
func drainCommand() command {
	return command{
		task: "administer", usage: "make cloved start no more runs, for maintenance",
		verbs: []verb{{line: "clove drain [--undo]", act: ask(methods.Drain).fills(fillDrain)}},
		description: "Running agents continue. New runs, restarts and schedules wait in the queue, also after a restart of\n" +
			"cloved or of the host. Runs of root's in the foreground do not go through cloved, and start.",
		flags: []cli.Flag{&cli.BoolFlag{Name: flagUndo, Usage: "let cloved start runs again", DisableDefaultText: true}},
	}
}

func fillDrain(l *line, params *api.DrainParams) error {
	params.On = !l.Bool(flagUndo)
	return nil
}

// A panic asks cloved, which writes the audit log, and does it itself where none runs.
func panicCommand() command {
	return command{
		task: "administer", usage: "end all agents at once, and let nothing start",
		verbs: []verb{{line: "clove panic REASON\nclove panic --clear", act: ask(methods.Panic).fills(fillPanic).without(panicAlone), free: true}},
		description: "Kills every agent of this installation, of all users, without grace. Until --clear nothing starts, also\n" +
			"after a restart of the host; new runs wait in cloved's queue. For root only.",
		flags: []cli.Flag{&cli.BoolFlag{Name: flagClear, Usage: "let runs start again", DisableDefaultText: true}},
	}
}

func fillPanic(l *line, params *api.PanicParams) error {
	params.Reason, params.Clear = l.Args().First(), l.Bool(flagClear)
	if params.Clear == (l.NArg() > 0) || l.NArg() > 1 || !params.Clear && params.Reason == "" {
		return invalid("", `clove panic "why", or clove panic --clear`, "say why in one argument")
	}
	return nil
}

func panicAlone(a *access, l *line, _ error) (func(api.PanicParams) (api.PanicResult, error), error) {
	b, err := a.ownStore(l.Context)
	if err != nil {
		return nil, err
	}
	paths, err := directories(l.Context)
	return func(params api.PanicParams) (api.PanicResult, error) { return panicHere(b, paths.State, params) }, err
}

// panicHere ends the agents first: the log comes after what cannot wait.
func panicHere(b backend, state string, params api.PanicParams) (result api.PanicResult, err error) {
	var runs []agent.Run
	if params.Clear {
		err = b.ClearPanic()
	} else {
		runs, err = b.Panic(params.Reason)
	}
	for _, run := range runs {
		result.Ended = append(result.Ended, run.Name().String())
	}
	log, lerr := audit.Open(audit.Dir(state), audit.Options{})
	if lerr != nil {
		return result, errors.Join(err, lerr)
	}
	_, lerr = log.AppendEnd(audit.PanicEntry(0, params.Reason, len(runs)))
	return result, errors.Join(err, lerr, log.Close())
}
