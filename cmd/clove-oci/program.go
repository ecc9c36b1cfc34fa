package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"

	"github.com/opencontainers/runtime-spec/specs-go"
	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/oci"
	"clove.run/clove/oci/container"
)

// program is one command line from its arguments to its exit status.
type program struct {
	out, err io.Writer
	log      container.Log
	status   int // of a container that ran in the foreground
}

// The exit statuses are runc's: a failure is 1, whatever it was.
const exitFailed = 1

const (
	flagRoot          = "root"
	flagLog           = "log"
	flagLogFormat     = "log-format"
	flagDebug         = "debug"
	flagSystemdCgroup = "systemd-cgroup"
	flagRecords       = "records"
)

// defaultRoot is on a tmpfs: containers do not outlive a boot.
const defaultRoot = "/run/clove-oci"

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

func (p *program) commands() []*cli.Command {
	commands := []*cli.Command{p.createCommand(), p.startCommand(), p.stateCommand(), p.killCommand(), p.deleteCommand(),
		p.runCommand(), p.execCommand(), p.pauseCommand(), p.resumeCommand(), p.updateCommand(),
		p.listCommand(), p.psCommand(), p.eventsCommand(), p.featuresCommand(), p.specCommand()}
	commands = append(commands, p.refusedCommands()...)
	for _, c := range commands {
		c.HideHelpCommand = true // or a container called help could not be named
	}
	return commands
}

func (p *program) app() *cli.App {
	return &cli.App{
		Name:      "clove-oci",
		Usage:     "run containers by the OCI runtime specification, with the agent's own rules",
		Version:   version,
		Flags:     globalFlags(),
		Commands:  p.commands(),
		Writer:    p.out,
		ErrWriter: p.err,
		Before:    p.prepare,
		// A variable's value may have commas.
		DisableSliceFlagSeparator: true,
		// Not here: execute logs a failure once, where the shim reads.
		ExitErrHandler: func(*cli.Context, error) {},
	}
}

// execute runs one command line, which begins with the program's name.
func (p *program) execute(args []string) int {
	cli.VersionPrinter = p.printVersion
	app := p.app()
	err := app.Run(arrange(app, args))
	if err == nil {
		return p.status
	}
	return p.failure(err)
}

// failure logs err where the shim looks, and returns the exit status.
func (p *program) failure(err error) int {
	text := describe(err)
	p.log.Error(text)
	if p.log.File != "" {
		fmt.Fprintln(p.err, text)
	}
	// Not errors.As: a hook that failed has an exit status, too, which is not this program's.
	if coded, ok := err.(cli.ExitCoder); ok {
		return coded.ExitCode()
	}
	return exitFailed
}

// describe is a failure on one line: engines show no other.
func describe(err error) string {
	var known *agent.Error
	if errors.As(err, &known) && known.Hint != "" {
		return err.Error() + ": " + known.Hint
	}
	return err.Error()
}

// prepare opens the log first: what fails afterwards belongs there.
func (p *program) prepare(c *cli.Context) error {
	json, err := container.LogFormat(c.String(flagLogFormat))
	if err != nil {
		return err
	}
	p.log = container.Log{File: c.String(flagLog), JSON: json, Debug: c.Bool(flagDebug)}
	if err := p.log.Open(); err != nil {
		p.log.File = "" // it is not open
		return err
	}
	root, err := filepath.Abs(c.String(flagRoot))
	if err != nil {
		return err
	}
	if root == "/" {
		return errors.New("option --root should not be set to /")
	}
	return c.Set(flagRoot, root)
}

// engine is where this command line's containers are.
func engine(c *cli.Context) container.Engine {
	return container.Engine{Root: c.String(flagRoot), SystemdCgroup: c.Bool(flagSystemdCgroup), Hooks: hooks{}}
}

// load finds the container that the first of at most so many arguments names.
func load(c *cli.Context, most int) (*container.Container, error) {
	if err := checkArgs(c, 1, most); err != nil {
		return nil, err
	}
	return engine(c).Load(c.Args().First())
}

// printVersion has the lines that engines look for, in the form of runc's.
func (p *program) printVersion(c *cli.Context) {
	fmt.Fprintf(p.out, "clove-oci version %s\nspec: %s\ngo: %s\nlibseccomp: %s\n",
		c.App.Version, specs.Version, runtime.Version(), container.SeccompVersion())
}

// unlimited is the most arguments of a command that takes another command line.
const unlimited = 1 << 30

// checkArgs wants from least to most arguments. Like runc, it shows the
// command's help on standard output and gives the error to the log.
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
