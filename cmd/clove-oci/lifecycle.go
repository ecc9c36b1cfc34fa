package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"clove.run/clove/oci/container"
)

const (
	flagAll   = "all"
	flagForce = "force"
)

// startCommand ends when the process executes, or, with a service manager's socket,
// when the process has reported that it is ready.
func (p *program) startCommand() *cli.Command {
	return &cli.Command{
		Name: "start", Usage: "let the process of a created container execute", ArgsUsage: "ID",
		Action: loading(1, func(_ *cli.Context, found *container.Container) error { return found.Exec(os.Getenv(notifySocket)) }),
	}
}

// killCommand signals the first process. With KILL, libcontainer also kills the others
// of a container that shares a pid namespace.
func (p *program) killCommand() *cli.Command {
	return &cli.Command{
		Name: "kill", Usage: "send a signal (default: SIGTERM) to the container's first process", ArgsUsage: "ID [SIGNAL]",
		// Shims still pass --all. As in today's runc it has one effect: a container
		// that does not run is no error.
		Flags: []cli.Flag{&cli.BoolFlag{Name: flagAll, Aliases: []string{"a"}, Hidden: true}},
		Action: loading(2, func(c *cli.Context, found *container.Container) error {
			signal, err := parseSignal(c.Args().Get(1))
			if err != nil {
				return err
			}
			err = found.Signal(signal)
			if errors.Is(err, container.ErrNotRunning) && c.Bool(flagAll) {
				return nil
			}
			return err
		}),
	}
}

// parseSignal reads a number, or a name with or without SIG, in any case. Numbers are
// not checked here: kill(2) rejects those that do not exist.
func parseSignal(text string) (unix.Signal, error) {
	if text == "" {
		return unix.SIGTERM, nil
	}
	if number, err := strconv.Atoi(text); err == nil {
		return unix.Signal(number), nil
	}
	name := strings.ToUpper(text)
	if !strings.HasPrefix(name, "SIG") {
		name = "SIG" + name
	}
	if signal := unix.SignalNum(name); signal != 0 {
		return signal, nil
	}
	return 0, fmt.Errorf("unknown signal %q", text)
}

// deleteCommand must be repeatable: engines call it again after a failure and after
// their own crash.
func (p *program) deleteCommand() *cli.Command {
	return &cli.Command{
		Name: "delete", Usage: "remove a container that has ended", ArgsUsage: "ID",
		Flags: []cli.Flag{&cli.BoolFlag{Name: flagForce, Aliases: []string{"f"}, Usage: "kill it first if it runs"}},
		Action: taking(1, 1, func(c *cli.Context) error {
			id, force := c.Args().First(), c.Bool(flagForce)
			found, err := engine(c).Load(id)
			// A create that was killed early leaves a directory without state.json,
			// which no engine removes. It is removed here, and without --force the
			// caller still gets the error that there is no such container.
			if errors.Is(err, container.ErrNotExist) {
				if removal := engine(c).RemoveUnfinished(id); removal != nil {
					fmt.Fprintf(p.err, "remove %s: %v\n", id, removal)
				}
				if force {
					return nil
				}
			}
			if err != nil {
				return err
			}
			return found.Delete(force)
		}),
	}
}
