package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"clove.run/clove/api"
)

const (
	flagFollow     = "follow"
	flagSince      = "since"
	flagTail       = "tail"
	flagTimestamps = "timestamps"
)

func (p *program) logsCommand() *cli.Command {
	return &cli.Command{
		Name: "logs", Usage: "show what a detached run wrote", UsageText: "clove logs [-f] [--since WHEN] [--tail N] NAME|ID",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: flagFollow, Aliases: []string{"f"}, Usage: "go on until the run has ended", DisableDefaultText: true},
			&cli.StringFlag{Name: flagSince, Usage: "only what is newer: 10m, or 2026-01-02T15:04:05Z"},
			&cli.StringFlag{Name: flagTail, Aliases: []string{"n"}, Usage: "only the last lines, a number", DefaultText: "all"},
			&cli.BoolFlag{Name: flagTimestamps, Aliases: []string{"t"}, Usage: "show when each line was written", DisableDefaultText: true},
			jsonFlag("write each line as a JSON object"),
		},
		Action: p.logs,
	}
}

func (p *program) logs(c *cli.Context) error {
	reference, err := oneReference(c)
	if err != nil {
		return err
	}
	params := api.LogsParams{RunParams: api.RunParams{Run: reference}, Follow: c.Bool(flagFollow)}
	if params.Since, err = parseSince(c.String(flagSince), time.Now()); err != nil {
		return err
	}
	if text := c.String(flagTail); text != "" && text != "all" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return invalid(flagTail, "write a number of lines", "%q is not a number of lines", text)
		}
		params.Tail = &n
	}
	d, err := p.cloved(c)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Logs(c.Context, params, func(line api.LogLine) error { return p.printLine(c, line) })
}

// printLine writes the agent's bytes as they were, each stream to its own.
func (p *program) printLine(c *cli.Context, line api.LogLine) error {
	if c.Bool(flagJSON) {
		writeLine(p.out, line)
		return nil
	}
	if line.LostLines > 0 {
		p.say("clove", cyan, fmt.Sprintf("%d lines (%d bytes) are lost here", line.LostLines, line.LostBytes))
		return nil
	}
	var to *os.File = p.out
	if line.Stream == "stderr" {
		to = p.err
	}
	var text []byte
	if c.Bool(flagTimestamps) {
		text = append([]byte(line.Time.Format(time.RFC3339Nano)), ' ')
	}
	text = append(text, line.Content()...)
	if !line.Partial {
		text = append(text, '\n')
	}
	_, err := to.Write(text)
	return err
}

// parseSince reads a time, or how long ago.
func parseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if when, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return when, nil
	}
	ago, err := parseClock(flagSince, text)
	if err != nil {
		return time.Time{}, invalid(flagSince, "write how long ago, such as 10m, or a time such as 2026-01-02T15:04:05Z", "%q is not a time", text)
	}
	return now.Add(-ago), nil
}
