package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"clove.run/clove/oci/container"
)

const (
	flagStats    = "stats"
	flagInterval = "interval"
)

// psCommand prints pids as the host counts them. containerd's shim takes them as JSON,
// and `docker top` looks for them in the output of the host's ps.
func (p *program) psCommand() *cli.Command {
	return &cli.Command{
		Name: "ps", Usage: "print the container's processes, as the host counts them", ArgsUsage: "ID [OPTION OF ps...]",
		Flags: []cli.Flag{&cli.StringFlag{Name: flagFormat, Aliases: []string{"f"}, Value: "table", Usage: "table or json"}},
		Action: loading(unlimited, func(c *cli.Context, found *container.Container) error {
			pids, err := found.Pids()
			if err != nil {
				return err
			}
			switch c.String(flagFormat) {
			case "json":
				return json.NewEncoder(p.out).Encode(pids)
			case "table":
				return p.processTable(pids, c.Args().Tail())
			}
			return errors.New("invalid format option")
		}),
	}
}

// processTable lets the host's ps print all processes, because the options are ps's
// own, and keeps the lines of the container's processes.
func (p *program) processTable(pids []int, options []string) error {
	if len(options) == 0 {
		options = []string{"-ef"}
	}
	output, err := exec.Command("ps", options...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	text, err := onlyOf(pids, string(output))
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(p.out, text)
	return err
}

// onlyOf keeps the title of ps's table and the lines of pids. The PID column is found
// by its title: the options decide where it stands.
func onlyOf(pids []int, table string) (string, error) {
	title, rest, _ := strings.Cut(table, "\n")
	column := slices.Index(strings.Fields(title), "PID")
	if column < 0 {
		return "", errors.New("couldn't find PID field in ps output")
	}
	var kept strings.Builder
	kept.WriteString(title + "\n")
	for line := range strings.Lines(rest) {
		fields := strings.Fields(line)
		if len(fields) <= column {
			continue
		}
		pid, err := strconv.Atoi(fields[column])
		if err != nil {
			return "", fmt.Errorf("unable to parse pid: %w", err)
		}
		if slices.Contains(pids, pid) {
			kept.WriteString(line)
		}
	}
	return kept.String(), nil
}

func (p *program) pauseCommand() *cli.Command {
	return onOne("pause", "stop all processes of a container until resume", (*container.Container).Pause)
}

func (p *program) resumeCommand() *cli.Command {
	return onOne("resume", "let the processes of a paused container go on", (*container.Container).Resume)
}

// onOne is a command that takes an id and nothing else.
func onOne(name, usage string, do func(*container.Container) error) *cli.Command {
	return &cli.Command{
		Name: name, Usage: usage, ArgsUsage: "ID",
		Action: loading(1, func(_ *cli.Context, found *container.Container) error { return do(found) }),
	}
}

// eventsCommand prints one JSON object per line, in the form of runc's events.
func (p *program) eventsCommand() *cli.Command {
	return &cli.Command{
		Name: "events", Usage: "print a container's usage periodically, and its out-of-memory events", ArgsUsage: "ID",
		Flags: []cli.Flag{
			&cli.DurationFlag{Name: flagInterval, Value: 5 * time.Second, Usage: "time between two lines"},
			&cli.BoolFlag{Name: flagStats, Usage: "print the usage once, and end"},
		},
		Action: loading(1, func(c *cli.Context, found *container.Container) error {
			if c.Duration(flagInterval) <= 0 {
				return errors.New("duration interval must be greater than 0")
			}
			emit := func(event container.Event) error { return json.NewEncoder(p.out).Encode(event) }
			if !c.Bool(flagStats) {
				return found.Follow(context.Background(), c.Duration(flagInterval), emit)
			}
			event, err := found.Stats()
			if err != nil {
				return err
			}
			return emit(event)
		}),
	}
}
