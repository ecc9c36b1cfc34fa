package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/client"
	"clove.run/clove/policies/host"
	"clove.run/clove/runtime"
)

// program is one clove process: its streams and its access to the host. Tests replace
// the functions.
type program struct {
	in, out, err *os.File
	host         func() (host.Host, error)
	open         func(runtime.Paths) (backend, error)
	dial         func(ctx context.Context, socket string) (*client.Client, error)
	doctor       func(run string) []runtime.Finding
	systemd      systemd
	ending       func(status int)            // called when a foreground run has ended, with its exit status; may be nil
	display      func(to *os.File) io.Writer // what an agent's output passes on its way to the user; set by displayFor
	json         bool                        // errors are JSON objects
	alone        bool                        // no cloved answers for the run in the foreground
	raw          bool                        // the agent has the terminal, which is raw: a line needs a carriage return
}

// systemd is the directory of an administrator's units on this host, and a path that
// exists while systemd runs.
type systemd struct{ units, booted string }

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

// backend opens the runtime in the directories that the flags name. Commands that need
// no store do not call it: opening creates files.
func (p *program) backend(c *cli.Context) (backend, error) {
	paths, err := directories(c)
	if err != nil {
		return nil, err
	}
	return p.open(paths)
}

// directories are those of the flags, absolute.
func directories(c *cli.Context) (runtime.Paths, error) {
	paths := runtime.Paths{State: c.String(flagRoot), Run: c.String(flagRunDir)}
	for flag, dir := range map[string]*string{"--" + flagRoot: &paths.State, "--" + flagRunDir: &paths.Run} {
		// Absolute, because supervisors and the store keep the paths.
		absolute, err := filepath.Abs(*dir)
		if err != nil || *dir == "" {
			return paths, &agent.Error{Kind: agent.KindInvalid, Step: flag, Message: "no directory is named", Err: err}
		}
		*dir = absolute
	}
	return paths, nil
}

func noArguments(c *cli.Context) error {
	if c.NArg() == 0 {
		return nil
	}
	return &agent.Error{Kind: agent.KindInvalid, Step: c.Command.Name, Message: fmt.Sprintf("it takes no arguments, but there is %q", c.Args().First()),
		Hint: "clove " + c.Command.Name + " --help"}
}
