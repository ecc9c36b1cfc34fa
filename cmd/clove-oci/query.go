package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"clove.run/clove/oci"
	"clove.run/clove/oci/container"
)

const (
	flagFormat   = "format"
	flagQuiet    = "quiet"
	flagRootless = "rootless"
)

// stateCommand prints the state as the runtime specification defines it, with runc's
// additions.
func (p *program) stateCommand() *cli.Command {
	return &cli.Command{
		Name: "state", Usage: "print the state of a container", ArgsUsage: "ID",
		Action: loading(1, func(_ *cli.Context, found *container.Container) error {
			state, err := found.State()
			if err != nil {
				return err
			}
			return writeState(p.out, state)
		}),
	}
}

// writeState ends without a line break, as runc's output does.
func writeState(w io.Writer, state container.State) error {
	text, err := json.MarshalIndent(state, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

func (p *program) listCommand() *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list the containers below --root",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: flagFormat, Aliases: []string{"f"}, Value: "table", Usage: "table or json"},
			&cli.BoolFlag{Name: flagQuiet, Aliases: []string{"q"}, Usage: "print ids only"},
		},
		Action: taking(0, 0, func(c *cli.Context) error {
			states, err := engine(c).List(p.err)
			// The default root is created with the first container, so its absence
			// means that there are none. A root that was named must exist: it may be
			// misspelt.
			if errors.Is(err, os.ErrNotExist) && engine(c).Root == defaultRoot {
				err = nil
			}
			if err != nil {
				return err
			}
			return writeList(p.out, states, c.String(flagFormat), c.Bool(flagQuiet))
		}),
	}
}

// writeList has runc's columns and widths, because scripts were written for those.
func writeList(w io.Writer, states []container.State, format string, quiet bool) error {
	if quiet {
		for _, s := range states {
			fmt.Fprintln(w, s.ID)
		}
		return nil
	}
	switch format {
	case "json":
		return json.NewEncoder(w).Encode(states)
	case "table":
		table := tabwriter.NewWriter(w, 12, 1, 3, ' ', 0)
		fmt.Fprint(table, "ID\tPID\tSTATUS\tBUNDLE\tCREATED\tOWNER\n")
		for _, s := range states {
			fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%s\n", s.ID, s.Pid, s.Status, s.Bundle, s.Created.Format(time.RFC3339Nano), s.Owner)
		}
		return table.Flush()
	}
	return errors.New("invalid format option")
}

// featuresCommand prints the specification's features document, which newer engines
// read to learn what a runtime supports.
func (p *program) featuresCommand() *cli.Command {
	return &cli.Command{
		Name: "features", Usage: "print what this runtime can do, in the specification's form",
		Action: taking(0, 0, func(c *cli.Context) error {
			encoder := json.NewEncoder(p.out)
			encoder.SetIndent("", "    ")
			return encoder.Encode(container.Features(oci.Prefix))
		}),
	}
}

func (p *program) specCommand() *cli.Command {
	return &cli.Command{
		Name: "spec", Usage: "write a " + configName + " to begin with",
		Flags: []cli.Flag{bundleFlag(), &cli.BoolFlag{Name: flagRootless, Usage: "with a user namespace that maps root to the caller"}},
		Action: taking(0, 0, func(c *cli.Context) error {
			if directory := c.String(flagBundle); directory != "" {
				if err := os.Chdir(directory); err != nil {
					return err
				}
			}
			text, err := json.MarshalIndent(container.Example(c.Bool(flagRootless)), "", "\t")
			if err != nil {
				return err
			}
			// O_EXCL: an existing config.json is a user's work and is not
			// overwritten.
			file, err := os.OpenFile(configName, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
			if errors.Is(err, os.ErrExist) {
				return fmt.Errorf("file %s exists: remove it first", configName)
			}
			if err != nil {
				return err
			}
			_, err = file.Write(text)
			return errors.Join(err, file.Close())
		}),
	}
}
