package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/opencontainers/runtime-spec/specs-go"
	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/internal/creates"
	"clove.run/clove/oci"
	"clove.run/clove/oci/container"
)

// program is one command line from its arguments to its exit status.
type program struct {
	out, err io.Writer
	log      container.Log
	status   int // of a process that ran in the foreground
}

// exitFailed is the status of every failure of clove-oci itself but exec's, as with runc.
// Engines tell failures apart by the message in the log, not by the status.
const exitFailed = 1

const (
	flagRoot          = "root"
	flagLog           = "log"
	flagLogFormat     = "log-format"
	flagDebug         = "debug"
	flagSystemdCgroup = "systemd-cgroup"
	flagRecords       = "records"
)

// defaultRoot is on a tmpfs: after a reboot no process of a container is left, so its
// directory must be gone as well.
const defaultRoot = "/run/clove-oci"

// globalFlags stand before the command's name, as with runc; shims write them into each
// call. --records is clove-oci's own.
func globalFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: flagRoot, Value: defaultRoot, Usage: "directory of the containers' states, on a tmpfs"},
		&cli.StringFlag{Name: flagLog, Usage: "file to append messages to (default: standard error)"},
		&cli.StringFlag{Name: flagLogFormat, Value: "text", Usage: "text or json"},
		&cli.BoolFlag{Name: flagDebug, Usage: "log what libcontainer does"},
		&cli.BoolFlag{Name: flagSystemdCgroup, Usage: "have systemd make the cgroup; cgroupsPath is SLICE:PREFIX:NAME"},
		&cli.StringFlag{Name: flagRecords, Usage: "directory of exit records (default: records below $CLOVE_ROOT, or " + oci.RecordsDir + ")"},
	}
}

// commands are runc's. refused.go has those that clove-oci does not support.
func (p *program) commands() []*cli.Command {
	commands := []*cli.Command{p.createCommand(), p.startCommand(), p.stateCommand(), p.killCommand(), p.deleteCommand(),
		p.runCommand(), p.execCommand(), p.pauseCommand(), p.resumeCommand(), p.updateCommand(),
		p.listCommand(), p.psCommand(), p.eventsCommand(), p.featuresCommand(), p.specCommand()}
	commands = append(commands, p.refusedCommands()...)
	for _, c := range commands {
		c.HideHelpCommand = true // otherwise no container could be called "help"
	}
	return commands
}

// app turns off what urfave/cli would print or exit by itself: an engine reads one
// message from the log, and failure writes it.
func (p *program) app() *cli.App {
	return &cli.App{
		Name:      "clove-oci",
		Usage:     "run containers by the OCI runtime specification, and enforce clove's annotations",
		Version:   version,
		Flags:     globalFlags(),
		Commands:  p.commands(),
		Writer:    p.out,
		ErrWriter: p.err,
		Before:    p.prepare,
		// The value of an environment variable may contain commas.
		DisableSliceFlagSeparator: true,
		// urfave/cli would print the error and exit here. failure logs it once, where
		// the shim reads it.
		ExitErrHandler: func(*cli.Context, error) {},
	}
}

// execute runs one command line, whose first word is the program's name, and returns
// the exit status.
func (p *program) execute(args []string) int {
	cli.VersionPrinter = p.printVersion
	app := p.app()
	err := app.Run(arrange(app, args))
	if err == nil {
		return p.status
	}
	return p.failure(err)
}

// failure writes err to the log, from which the shim takes the message for its users,
// and returns the exit status. If the log is a file, the message also goes to standard
// error, for a person who runs the command.
func (p *program) failure(err error) int {
	text := describe(err)
	p.log.Error(text)
	if p.log.File != "" {
		fmt.Fprintln(p.err, text)
	}
	// A type assertion and not errors.As: a hook that failed wraps an exec.ExitError,
	// whose status is the hook's and not this program's.
	if coded, ok := err.(cli.ExitCoder); ok {
		return coded.ExitCode()
	}
	return exitFailed
}

// describe returns a failure on one line, with its hint: engines show only the last
// line of level error.
func describe(err error) string {
	var known *agent.Error
	if errors.As(err, &known) && known.Hint != "" {
		return err.Error() + ": " + known.Hint
	}
	return err.Error()
}

// prepare opens the log before anything else, so that every later failure is written to
// it.
func (p *program) prepare(c *cli.Context) error {
	json, err := container.LogFormat(c.String(flagLogFormat))
	if err != nil {
		return err
	}
	p.log = container.Log{File: c.String(flagLog), JSON: json, Debug: c.Bool(flagDebug)}
	if err := p.log.Open(); err != nil {
		p.log.File = "" // it could not be opened: the message goes to standard error only
		return err
	}
	root, err := filepath.Abs(c.String(flagRoot))
	if err != nil {
		return err
	}
	// Every container is a directory below the root, and delete removes such
	// directories recursively.
	if root == "/" {
		return errors.New("option --root should not be set to /")
	}
	// Written back as an absolute path: create changes to the bundle's directory later.
	return c.Set(flagRoot, root)
}

// engine describes where the containers of this command line are. Every command gets
// the hooks, because loading a container may have to start its monitor again.
func engine(c *cli.Context) container.Engine {
	return container.Engine{Root: c.String(flagRoot), Register: register(), SystemdCgroup: c.Bool(flagSystemdCgroup), Hooks: hooks{}}
}

// register is below the run directory of this node's clove, where `clove check` looks.
func register() string {
	return filepath.Join(cmp.Or(os.Getenv("CLOVE_RUN_DIR"), filepath.Dir(api.DefaultSocket)), creates.Name)
}

// taking is the action of a command with so many arguments.
func taking(least, most int, do cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		if err := checkArgs(c, least, most); err != nil {
			return err
		}
		return do(c)
	}
}

// loading is the action of a command whose first argument names a container. most is how many
// arguments it takes.
func loading(most int, do func(*cli.Context, *container.Container) error) cli.ActionFunc {
	return taking(1, most, func(c *cli.Context) error {
		found, err := engine(c).Load(c.Args().First())
		if err != nil {
			return err
		}
		return do(c, found)
	})
}

// printVersion writes the lines of runc's --version, which engines read for `docker
// info` and `podman info`.
func (p *program) printVersion(c *cli.Context) {
	fmt.Fprintf(p.out, "clove-oci version %s\nspec: %s\ngo: %s\nlibseccomp: %s\n",
		c.App.Version, specs.Version, runtime.Version(), container.SeccompVersion())
}

// unlimited is the number of arguments of a command that takes another command line.
const unlimited = 1 << 30

// checkArgs requires from least to most arguments. Like runc it prints the command's
// help on standard output, and returns the message that belongs in the log.
func checkArgs(c *cli.Context, least, most int) error {
	var wish string
	switch n := c.NArg(); {
	case least == most && n != least:
		wish = fmt.Sprintf("exactly %d", least)
	case n < least:
		wish = fmt.Sprintf("a minimum of %d", least)
	case n > most:
		wish = fmt.Sprintf("a maximum of %d", most)
	default:
		return nil
	}
	fmt.Fprintf(c.App.Writer, "Incorrect Usage.\n\n")
	_ = cli.ShowSubcommandHelp(c)
	return fmt.Errorf("clove-oci: %q requires %s argument(s)", c.Command.Name, wish)
}
