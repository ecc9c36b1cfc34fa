package main

import (
	"errors"
	"slices"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
)

// execute runs one command line, without the program's name, and returns the exit
// status.
func (p program) execute(args []string) int {
	// First: an error of any later step must be in the form that was asked for.
	p.json = wantsJSON(args)
	commands := p.commands()
	fitHelp(commands, args)
	line, err := arrange(args, commands)
	if err == nil {
		app := p.app(commands)
		if line.command == "" { // only clove's own help can follow
			app.CustomAppHelpTemplate = appHelpTemplate(app)
		}
		err = app.Run(append([]string{"clove"}, line.argv...))
	}
	var status exitStatus
	if err == nil || errors.As(err, &status) {
		p.reportLosses()
		return p.withLosses(int(status))
	}
	p.report(err)
	// Their other statuses are the process's own.
	if slices.Contains([]string{runName, askName, chatName, execName}, line.command) {
		return agent.ExitStartFailed
	}
	return exitFailed
}

// table has all commands, in the order of the manual page and of the help in each task.
func table() []command {
	return []command{
		runCommand(), askCommand(), chatCommand(), agentsCommand(), upCommand(), downCommand(), psCommand(), showCommand(), inspectCommand(), logsCommand(), attachCommand(), execCommand(), cpCommand(), catCommand(), waitCommand(),
		stopCommand(), killCommand(), pauseCommand(), resumeCommand(), restartCommand(), updateCommand(), statsCommand(), topCommand(),
		rmCommand(), renameCommand(), pruneCommand(), eventsCommand(), traceCommand(), drainCommand(), panicCommand(),
		diffCommand(), applyCommand(), homeCommand(), grantCommand(), stateCommand(), budgetCommand(), mailCommand(), blobCommand(), nameCommand(), jobsCommand(), queueCommand(), kernelCommand(), modelsCommand(), mcpCommand(), policyCommand(), manifestCommand(), approvalsCommand(), secretCommand(), toolCommand(), seccompCommand(), benchCommand(),
		whyCommand(), renderCommand(), nodeCommand(), doctorCommand(), checkCommand(), gcCommand(), backupCommand(), auditCommand(), apiCommand(), debugCommand(), versionCommand(), completionCommand(),
		superviseCommand(), guardCommand(), manualCommand(),
	}
}

// commands is the table as urfave/cli takes it.
func (p program) commands() []*cli.Command {
	rows := table()
	all := make([]*cli.Command, len(rows))
	for i := range rows {
		all[i] = rows[i].cli(p)
	}
	return all
}

// before runs when all flags are parsed. It takes the flags from the command, which
// urfave/cli would search for actions next: for each flag it would go through all of
// them with a regular expression, which takes longer than the rest of a command line,
// and no flag has an action.
func before(c *cli.Context) error {
	flags := c.Command.Flags
	c.Command.Flags = nil
	if c.Command.Name == runName {
		return nil // run checks later, because its mistakes go into a record
	}
	return refuseEmpty(flags, c)
}

// app describes the whole to urfave/cli. All texts that it would write about
// mistakes are turned off: execute reports each once, in clove's form.
func (p program) app(commands []*cli.Command) *cli.App {
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
		Writer:                    p.lost.noting(p.out),
		ErrWriter:                 p.err,
		Action:                    cli.ShowAppHelp,
		ExitErrHandler:            func(*cli.Context, error) {}, // execute reports the error and decides the exit status
		OnUsageError:              func(_ *cli.Context, err error, _ bool) error { return badLine(err) },
	}
}

// badLine is a mistake that urfave/cli found and arrange did not.
func badLine(err error) error {
	return &agent.Error{Kind: agent.KindInvalid, Message: err.Error(), Hint: "clove --help shows the flags"}
}
