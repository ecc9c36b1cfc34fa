package main

import (
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/runtime"
)

// program is one clove process. A command gets of it what it uses: the screen, the access, or
// both. Commands with several verbs, and tasks with several steps, are types of their own over
// the two.
type program struct {
	*screen
	*access
}

// screen is where a command reads, prints and reports.
type screen struct {
	in, out, err *os.File
	json         bool                        // errors are JSON objects
	raw          bool                        // the agent has the terminal, which is raw: a line needs a carriage return
	display      func(to *os.File) io.Writer // what an agent's output passes on its way to the user; set by displayFor
	lost         *losses                     // output that could not be written; nil: it is not noted
	asking       *asking                     // the questions of the run at this terminal; nil: there are none
}

// exitStatus is an error that ends the program with a number and without a message: it
// was printed already, or the number is the agent's.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// exitFailed is the status of every failed command but run and exec. Their statuses are
// the process's, and only 125 is left for clove's own failures.
const exitFailed = 1

// terminator ends clove's own flags; what follows it is the agent's.
const terminator = "--"

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

func noArguments(c *cli.Context) error {
	if c.NArg() == 0 {
		return nil
	}
	return &agent.Error{Kind: agent.KindInvalid, Step: c.Command.Name, Message: fmt.Sprintf("it takes no arguments, but there is %q", c.Args().First()),
		Hint: "clove " + c.Command.Name + " --help"}
}
