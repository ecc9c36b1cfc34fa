package main

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
)

const flagAll = "all"

func (p *program) psCommand() *cli.Command {
	return &cli.Command{
		Name: "ps", Usage: "list the live runs, newest first", UsageText: "clove ps [-a] [--json]",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: flagAll, Aliases: []string{"a"}, Usage: "also those that have ended", DisableDefaultText: true},
			jsonFlag("write the runs as a JSON array"),
		},
		Action: p.ps,
	}
}

// jsonFlag is every listing's --json.
func jsonFlag(usage string) cli.Flag {
	return &cli.BoolFlag{Name: flagJSON, Usage: usage, DisableDefaultText: true}
}

// ps: without -a only what is alive, as docker ps.
func (p *program) ps(c *cli.Context) error {
	if err := noArguments(c); err != nil {
		return err
	}
	b, err := p.backend(c)
	if err != nil {
		return err
	}
	runs, err := b.List()
	if err != nil {
		return err
	}
	shown := make([]agent.Run, 0, len(runs))
	for _, run := range runs {
		if c.Bool(flagAll) || run.State != agent.StateEnded {
			shown = append(shown, run)
		}
	}
	if c.Bool(flagJSON) {
		return p.printJSON(shown)
	}
	rows := [][]string{{"ID", "NAME", "STATE", "EXIT", "CREATED", "RAN", "COMMAND"}}
	for _, run := range shown {
		rows = append(rows, psRow(run, time.Now()))
	}
	return printTable(p.out, rows)
}

// shortID is as much of an ID as people need.
const shortID = 8

// commandWidth keeps a row within a usual terminal.
const commandWidth = 40

// psRow shows an ended run's status in place of its state: it says more.
func psRow(run agent.Run, now time.Time) []string {
	state, exit, ran := string(run.State), "", ""
	if record := run.Record; record != nil {
		state, exit = string(record.Status), strconv.Itoa(record.ExitCode)
		ran = (time.Duration(record.WallMS) * time.Millisecond).String()
	} else if !run.Started.IsZero() {
		ran = now.Sub(run.Started).Round(time.Second).String()
	}
	words := slices.Clone(run.Spec.Command)
	if len(words) > 1 {
		// An interpreter's path would leave no room for the script's.
		words[0] = filepath.Base(words[0])
	}
	command := strings.Join(words, " ")
	if letters := []rune(command); len(letters) > commandWidth {
		command = string(letters[:commandWidth-1]) + "…"
	}
	id := string(run.Spec.ID)
	return []string{id[:min(len(id), shortID)], run.Spec.Name, state, exit, units.HumanDuration(now.Sub(run.Created)) + " ago", ran, command}
}
