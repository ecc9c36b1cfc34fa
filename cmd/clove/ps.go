package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

const (
	flagAll    = "all"
	flagQuiet  = "quiet"
	flagLast   = "last"
	flagLatest = "latest"
	flagTree   = "tree"
)

const psName = "ps"

func psCommand() command {
	return command{
		task: "look", usage: "list the live runs, newest first",
		verbs: []verb{{line: "clove ps [-a] [-q] [--last N] [--tree] [--filter KEY=VALUE] [--format TEMPLATE] [--json]", act: by(listRuns)}},
		description: "Filters are name=PART, state=STATE (queued, starting, running, paused, ended, stopped, given-up, lost, or a status such as timeout),\n" +
			"team=TEAM, label=KEY and label=KEY=VALUE. All that are given must hold; one for a state shows ended runs too.\n" +
			"--tree shows a run that an agent started below that agent's run, if both are listed.\n" +
			"Root sees the runs of other users as UID/NAME, which means them in every command.",
		flags: []cli.Flag{
			&cli.BoolFlag{Name: flagAll, Aliases: []string{"a"}, Usage: "also those that have ended", DisableDefaultText: true},
			&cli.BoolFlag{Name: flagQuiet, Aliases: []string{"q"}, Usage: "only their IDs, whole", DisableDefaultText: true},
			&cli.StringSliceFlag{Name: flagFilter, Usage: "only those that match KEY=VALUE"},
			value("", flagLast, "n", "the last N that were made, ended ones too", "all"),
			boolean("", flagLatest, "l", "the same as --last 1"),
			boolean("", flagTree, "", "each run below the one that started it"),
			value("", flagFormat, "", "write each by a Go template, such as '{{.ID}} {{.Names}}' or 'table {{.ID}}\\t{{.Status}}'", ""),
			jsonFlag("write the runs as a JSON array"),
		},
	}
}

// listRuns shows only live runs without -a, as docker ps does.
func listRuns(p program, c *cli.Context) error {
	filters, err := parseFilters(c.StringSlice(flagFilter))
	if err != nil {
		return err
	}
	last, err := readLast(c)
	if err := cmp.Or(err, tableOnly(c)); err != nil {
		return err
	}
	format, err := formatOf(c, psHeadings, psFormatHint)
	if err != nil {
		return err
	}
	// A filter for a state means all states, or `--filter state=exited` would never
	// show anything.
	all := c.Bool(flagAll) || last > 0 || slices.ContainsFunc(filters, func(f filter) bool { return f.key == filterState })
	listed, err := p.list(c, all)
	if err != nil {
		return err
	}
	// Filters apply here and not in cloved, so that they mean the same without it.
	listed = slices.DeleteFunc(listed, func(one api.RunResult) bool {
		return slices.ContainsFunc(filters, func(f filter) bool { return !f.matches(one.Run) })
	})
	// After the filters, of the runs that match. The list is in order already, newest
	// first.
	if last > 0 {
		listed = listed[:min(last, len(listed))]
	}
	switch {
	case format != nil:
		now, rows := time.Now(), []any{}
		for _, one := range listed {
			rows = append(rows, fieldsOf(one.Run, now))
		}
		return format.print(p.out, rows)
	case c.Bool(flagJSON):
		type waits struct {
			agent.Run
			Reason string `json:"reason,omitempty"` // why it waits
		}
		runs := []waits{}
		for _, one := range listed {
			runs = append(runs, waits{one.Run, one.Reason})
		}
		return p.printJSON(runs)
	case c.Bool(flagQuiet):
		for _, one := range listed {
			if _, err := fmt.Fprintln(p.out, one.Run.Spec.ID); err != nil {
				return err
			}
		}
		return nil
	}
	return printRuns(p.screen, listed, c.Bool(flagTree))
}

// tableOnly refuses --tree beside forms that have no indentation. JSON has the parent of each run.
func tableOnly(c *cli.Context) error {
	if c.Bool(flagTree) && (c.Bool(flagQuiet) || c.String(flagFormat) != "") {
		return invalid(flagTree, "omit one of them; --json has the parent of each run", "--quiet and --format are lists")
	}
	return nil
}

// readLast returns how many runs are wanted; 0 means all.
func readLast(c *cli.Context) (int, error) {
	text := c.String(flagLast)
	switch {
	case text == "" && c.Bool(flagLatest):
		return 1, nil
	case text == "":
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || c.Bool(flagLatest) {
		return 0, invalid(flagLast, "write --last 5, or --latest for one", "%q is not a number of runs", text)
	}
	return n, nil
}

// printRuns prints the table, and below it on stderr why queued runs wait.
func printRuns(s *screen, listed []api.RunResult, tree bool) error {
	var places []branch
	if tree {
		listed, places = runTree(listed)
	}
	rows := [][]string{{"ID", "NAME", "STATE", "EXIT", "CREATED", "RAN", "COMMAND"}}
	timed := slices.ContainsFunc(listed, func(one api.RunResult) bool { return one.Run.Spec.Schedule != "" })
	if timed {
		rows[0] = slices.Insert(rows[0], nextColumn, "NEXT")
	}
	if len(listed) == 0 {
		s.none("there is no such run; clove ps -a lists those that have ended, too")
	}
	for i, one := range listed {
		row := psRow(one.Run, time.Now())
		if tree {
			row[nameColumn] = places[i].indented(row[nameColumn])
		}
		if timed {
			row = slices.Insert(row, nextColumn, nextStart(one.Run))
		}
		rows = append(rows, row)
	}
	if err := s.printFitting(rows, len(rows[0])-1, nameColumn); err != nil {
		return err
	}
	for _, one := range listed {
		if one.Reason != "" {
			s.say("clove", cyan, shown(one.Run.Name())+" waits: "+one.Reason)
		}
	}
	return nil
}

// nameColumn is cut after the command on a narrow terminal: the ID names a run as well.
const nameColumn = 1

// nextColumn is the column of a schedule's next start. It exists only if a run in the
// list has a schedule.
const nextColumn = 4

// nextStart is in the time zone of the caller. A time in another year is shown as
// a date: the column is narrow.
func nextStart(run agent.Run) string {
	if run.Queue.Next.IsZero() {
		return ""
	}
	if next := run.Queue.Next.Local(); next.Year() != time.Now().Year() {
		return next.Format(time.DateOnly)
	}
	return run.Queue.Next.Local().Format("01-02 15:04")
}

// list asks cloved if it runs, otherwise the store. A brief answer has what the table
// needs; JSON has everything.
func (a *access) list(c *cli.Context, all bool) ([]api.RunResult, error) {
	d, b, err := a.either(c)
	if err != nil {
		return nil, err
	}
	if d != nil {
		defer d.Close()
		return client.Collect(client.All(c.Context, d, methods.RunList, api.ListParams{All: all, Brief: !c.Bool(flagJSON)}))
	}
	runs, err := b.List()
	var shown []api.RunResult
	for _, run := range runs {
		if all || run.State != agent.StateEnded {
			shown = append(shown, api.RunResult{Run: run.WithoutEnv()})
		}
	}
	return shown, err
}

// psRow shows an ended run's status in place of its state, because it says more.
func psRow(run agent.Run, now time.Time) []string {
	f, command := fieldsOf(run, now), slices.Clone(run.Spec.Command)
	if len(command) > 1 {
		// The path of an interpreter would leave no space for the script's.
		command[0] = filepath.Base(command[0])
	}
	return []string{f.ID[:min(len(f.ID), shortID)], f.Names, f.Status, f.ExitCode, f.RunningFor, f.Ran, strings.Join(command, " ")}
}

// shown is a run's name as the caller writes it. Only root sees runs of others, whose
// names then begin with the user's number.
func shown(name agent.RunName) string {
	if os.Geteuid() != 0 {
		return name.Name
	}
	return name.For(0)
}

// age is how long ago something was, in its largest unit only: rows have to fit.
func age(since time.Duration) string {
	for _, unit := range []struct {
		letter string
		length time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}} {
		if since >= unit.length {
			return strconv.Itoa(int(since/unit.length)) + unit.letter + " ago"
		}
	}
	return strconv.Itoa(int(max(since, 0)/time.Second)) + "s ago"
}

// lasted is a duration without digits that are too fine for it: milliseconds of minutes,
// seconds of hours.
func lasted(d time.Duration) string {
	switch {
	case d >= time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	case d >= time.Minute:
		return d.Round(time.Second).String()
	}
	return d.String()
}
