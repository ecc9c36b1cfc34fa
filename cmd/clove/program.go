package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/client"
	"clove.run/clove/policies/host"
	"clove.run/clove/runtime"
)

// program is one clove process: its streams and its ways to the host.
type program struct {
	in, out, err *os.File
	host         func() (host.Host, error)
	open         func(runtime.Paths) (backend, error)
	dial         func(ctx context.Context, socket string) (*client.Client, error)
	doctor       func(run string) []runtime.Finding
	systemd      systemd
	ending       func(status int) // a foreground run is over, with this exit status; nil: nobody wants to know
	json         bool             // errors are JSON objects
	raw          bool             // the agent has the terminal: a new line does not begin at its left
}

// exitStatus ends the program with a number and without a message.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// exitFailed is the status of every command but run and exec that did not
// succeed: theirs is the process's, and leaves only 125 for clove's own failures.
const exitFailed = 1

// execute runs one command line, without the program's name, and returns the
// exit status.
func (p *program) execute(args []string) int {
	p.json = wantsJSON(args)
	commands := p.commands()
	fitHelp(commands, args)
	line, err := arrange(args, commands)
	if err == nil {
		app := p.app(commands)
		if line.command == "" { // nothing but help is left
			app.CustomAppHelpTemplate = appHelpTemplate(app.Flags)
		}
		err = app.Run(append([]string{"clove"}, line.argv...))
	}
	var status exitStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	}
	p.report(err)
	if line.command == runName || line.command == execName {
		return agent.ExitStartFailed
	}
	return exitFailed
}

// commands is the table of subcommands, in the order of the help.
func (p *program) commands() []*cli.Command {
	all := []*cli.Command{
		p.runCommand(), p.psCommand(), p.inspectCommand(), p.logsCommand(), p.attachCommand(), p.execCommand(), p.cpCommand(), p.waitCommand(),
		p.stopCommand(), p.killCommand(), p.pauseCommand(), p.resumeCommand(), p.restartCommand(), p.updateCommand(), p.statsCommand(), p.topCommand(),
		p.rmCommand(), p.renameCommand(), p.pruneCommand(), p.eventsCommand(), p.drainCommand(),
		p.diffCommand(), p.applyCommand(),
		p.whyCommand(), p.renderCommand(), p.nodeCommand(), p.doctorCommand(), p.checkCommand(), p.gcCommand(), p.backupCommand(), p.debugCommand(), p.versionCommand(), p.completionCommand(),
		p.superviseCommand(), p.guardCommand(), p.manualCommand(),
	}
	for _, c := range all {
		c.HideHelpCommand = true // a script may be called "help"
		for _, c := range append(c.Subcommands, c) {
			c.Before = before
		}
	}
	return all
}

// before runs when all flags are parsed. It has urfave/cli look for no actions of
// flags, of which there are none: for each flag it would go through all of them
// with a regular expression, which takes longer than the rest of a command line.
func before(c *cli.Context) error {
	flags := c.Command.Flags
	c.Command.Flags = nil
	if c.Command.Name == runName {
		return nil // it checks with the rest, for a mistake is in its record
	}
	return refuseEmpty(flags, c)
}

// refuseEmpty rejects flags with an empty value. --timeout "$T" with T unset must not mean
// a run without a time limit.
func refuseEmpty(flags []cli.Flag, given *cli.Context) error {
	for _, f := range flags {
		name := f.Names()[0]
		if !given.IsSet(name) {
			continue
		}
		empty := false
		switch f.(type) {
		case *cli.StringFlag:
			empty = given.String(name) == ""
		case *cli.StringSliceFlag:
			empty = slices.Contains(given.StringSlice(name), "")
		}
		if empty {
			return invalid(name, "give a value, or leave the flag away", "its value is empty")
		}
	}
	return nil
}

// The flags that every command has.
const (
	flagRoot   = "root"
	flagRunDir = "run-dir"
	flagSocket = "socket"
	flagHelp   = "help"
)

// globalFlags are taken on both sides of a command's name.
func globalFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: flagRoot, Usage: "directory that keeps records and layers", EnvVars: []string{"CLOVE_ROOT"}, Value: runtime.DefaultPaths.State},
		&cli.StringFlag{Name: flagRunDir, Usage: "directory of the live runs, on a tmpfs", EnvVars: []string{"CLOVE_RUN_DIR"}, Value: runtime.DefaultPaths.Run},
		&cli.StringFlag{Name: flagSocket, Usage: "cloved's socket", EnvVars: []string{"CLOVE_SOCKET"}, DefaultText: "clove.sock in --run-dir"},
	}
}

// app describes the whole to urfave/cli. All texts that it would write about
// mistakes are turned off: execute reports each once, in clove's form.
func (p *program) app(commands []*cli.Command) *cli.App {
	return &cli.App{
		Name:                      "clove",
		Usage:                     "run untrusted agents, each in a sandbox of its own",
		UsageText:                 "clove run [flags] SCRIPT [flags] [-- ARGS...]\nclove run [flags] -- COMMAND [ARGS...]\nclove COMMAND [flags]",
		Commands:                  commands,
		Flags:                     globalFlags(),
		HideHelpCommand:           true,
		HideVersion:               true,
		DisableSliceFlagSeparator: true, // an environment variable may hold a comma
		Reader:                    p.in,
		Writer:                    p.out,
		ErrWriter:                 p.err,
		Action:                    cli.ShowAppHelp,
		ExitErrHandler:            func(*cli.Context, error) {}, // execute decides
		OnUsageError:              func(_ *cli.Context, err error, _ bool) error { return badLine(err) },
	}
}

// badLine is a mistake that urfave/cli found and arrange did not.
func badLine(err error) error {
	return &agent.Error{Kind: agent.KindInvalid, Message: err.Error(), Hint: "clove --help shows the flags"}
}

// backend opens the runtime in the directories that the flags name.
func (p *program) backend(c *cli.Context) (backend, error) {
	paths := runtime.Paths{State: c.String(flagRoot), Run: c.String(flagRunDir)}
	for flag, dir := range map[string]*string{"--" + flagRoot: &paths.State, "--" + flagRunDir: &paths.Run} {
		absolute, err := filepath.Abs(*dir)
		if err != nil || *dir == "" {
			return nil, &agent.Error{Kind: agent.KindInvalid, Step: flag, Message: "no directory is named", Err: err}
		}
		*dir = absolute
	}
	return p.open(paths)
}

// oneReference is the one run that a command is about.
func oneReference(c *cli.Context) (string, error) {
	if c.NArg() == 1 {
		return c.Args().First(), nil
	}
	return "", &agent.Error{Kind: agent.KindInvalid, Step: c.Command.Name, Message: fmt.Sprintf("it takes one run, not %d", c.NArg()),
		Hint: "clove " + c.Command.Name + " NAME, or the beginning of an ID; clove ps -a lists them"}
}

// noArguments refuses words that a command would ignore.
func noArguments(c *cli.Context) error {
	if c.NArg() == 0 {
		return nil
	}
	return &agent.Error{Kind: agent.KindInvalid, Step: c.Command.Name, Message: fmt.Sprintf("it takes no arguments, but there is %q", c.Args().First()),
		Hint: "clove " + c.Command.Name + " --help"}
}
