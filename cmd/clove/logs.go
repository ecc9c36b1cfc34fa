package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/policies/settings"
)

const (
	flagFollow     = "follow"
	flagSince      = "since"
	flagTail       = "tail"
	flagTimestamps = "timestamps"
	flagModels     = "models"
)

func logsCommand() command {
	return command{
		task: "look", runs: completeAll, usage: "show what a detached run wrote",
		verbs:       []verb{{line: "clove logs [-f] [--since WHEN] [--tail N] [--models] NAME|ID", act: by(showLogs)}},
		description: "The name of a team (clove up) shows those of its agents together, each line behind the agent's name.",
		flags: []cli.Flag{
			&cli.BoolFlag{Name: flagFollow, Aliases: []string{"f"}, Usage: "go on until the run has ended", DisableDefaultText: true},
			&cli.StringFlag{Name: flagSince, Usage: "only what is newer: 10m, or 2026-01-02T15:04:05Z"},
			&cli.StringFlag{Name: flagTail, Aliases: []string{"n"}, Usage: "only the last lines, a number", DefaultText: "all"},
			&cli.BoolFlag{Name: flagTimestamps, Aliases: []string{"t"}, Usage: "show when each line was written", DisableDefaultText: true},
			&cli.BoolFlag{Name: flagModels, Usage: "show what the calls of models of a run with --model-log said and got", DisableDefaultText: true},
			jsonFlag("write each line as a JSON object"),
		},
	}
}

// showLogs needs cloved for ended runs too: only cloved checks whether a log belongs to the
// caller.
func showLogs(p program, c *cli.Context) error {
	params := api.LogsParams{RunParams: api.RunParams{Run: c.Args().First()}, Follow: c.Bool(flagFollow), Models: c.Bool(flagModels)}
	var err error
	if params.Since, err = parseSince(c.String(flagSince), time.Now()); err != nil {
		return err
	}
	// "all" is docker's name of the default.
	if text := c.String(flagTail); text != "" && text != "all" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return invalid(flagTail, "write a number of lines", "%q is not a number of lines", text)
		}
		// A pointer, because 0 lines is a number too.
		params.Tail = &n
	}
	p.displayFor(c)
	d, err := p.cloved(c)
	if err != nil {
		return err
	}
	defer d.Close()
	printer := &linePrinter{screen: p.screen, json: c.Bool(flagJSON), stamps: c.Bool(flagTimestamps), open: map[string]bool{}}
	err = d.Logs(c.Context, params, printer.print)
	if err == nil || agent.KindOf(err) != agent.KindNotFound {
		return err
	}
	team, terr := teams(p).runs(c.Context, d, func(run agent.Run) bool { return ofTeam(run, params.Run) })
	switch {
	case terr != nil || len(team) == 0:
		return err
	case c.Bool(flagJSON):
		return invalid(flagJSON, "name one of its runs", "%s is a team, whose lines are mixed", params.Run)
	}
	return teams(p).together(c, d, team, func(_ int, one *api.LogsParams) {
		run := one.RunParams
		*one = params
		one.RunParams = run
	})
}

// linePrinter prints the lines of a log.
type linePrinter struct {
	*screen
	json, stamps bool
	name         string          // before each line, of one of several runs
	open         map[string]bool // streams whose last line continues in the next piece
	text         bytes.Buffer    // collected output for one stream
	to           *os.File
}

// print writes the agent's bytes as they were, to the stream that they were written to,
// in the order of the log.
func (l *linePrinter) print(lines []api.LogLine) error {
	for _, line := range lines {
		if err := l.add(line); err != nil {
			return err
		}
	}
	return l.flush()
}

// add collects what goes to one stream and flushes when the stream changes, so that
// many lines cost one write.
func (l *linePrinter) add(line api.LogLine) error {
	// Lines of clove's own go to stderr, so that stdout has the agent's bytes only.
	clovesOwn := !l.json && (line.LostLines > 0 || line.Stream == api.StreamClove)
	to := l.out
	if clovesOwn || !l.json && line.Stream == "stderr" {
		to = l.err
	}
	if to != l.to || clovesOwn {
		if err := l.flush(); err != nil {
			return err
		}
		l.to = to
	}
	switch {
	case l.json:
		return writeLine(&l.text, line)
	case line.LostLines > 0:
		l.say("clove", cyan, fmt.Sprintf(l.name+"%d lines (%d bytes) are lost here", line.LostLines, line.LostBytes))
		return nil
	case clovesOwn:
		l.say("clove", cyan, l.name+string(line.Content()))
		return nil
	}
	if l.name != "" {
		line.Partial = false // the next line may be another run's
		l.text.WriteString(l.name)
	}
	// A line that came in pieces has one time, that of its beginning.
	if l.stamps && !l.open[line.Stream] {
		l.text.WriteString(line.Time.Format(stampFormat) + " ")
	}
	// A line that is not UTF-8 comes as bytes.
	if line.Bytes != nil {
		l.text.Write(line.Bytes)
	} else {
		l.text.WriteString(line.Text)
	}
	if l.open[line.Stream] = line.Partial; !line.Partial {
		l.text.WriteByte('\n')
	}
	return nil
}

// flush writes what was gathered.
func (l *linePrinter) flush() error {
	if l.text.Len() == 0 {
		return nil
	}
	_, err := l.text.WriteTo(l.display(l.to))
	return err
}

// stampFormat has a fixed width, so that what follows is aligned.
const stampFormat = "2006-01-02T15:04:05.000000Z"

// parseSince reads a point in time, which is local if it names no zone, or how long
// ago.
func parseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if when, ok := parseTime(text, now.Location()); ok {
		return when, nil
	}
	ago, err := settings.ParseClock(flagSince, text)
	if err != nil {
		return time.Time{}, invalid(flagSince, "write how long ago, such as 10m, or a time such as 2026-01-02T15:04:05Z", "%q is not a time", text)
	}
	return now.Add(-ago), nil
}

// readSince is parseSince of a flag that was given.
func readSince(text string) (time.Time, error) { return parseSince(text, time.Now()) }

// parseTime reads a point in time, which is in zone if it names none.
func parseTime(text string, zone *time.Location) (time.Time, bool) {
	for _, format := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", time.DateOnly} {
		if when, err := time.ParseInLocation(format, text, zone); err == nil {
			return when, true
		}
	}
	return time.Time{}, false
}
