package main

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/policies/settings"
)

const flagInterval = "interval"

func statsCommand() command {
	return command{
		task: "look", runs: completeLive, usage: "show what live runs use",
		verbs: []verb{{line: "clove stats [--once] [--interval DUR] [--tree] [--json] [NAME|ID...]", act: by(showStats)}},
		description: "Without a name: all live runs. On a terminal the table is drawn anew until ctrl-c.\n" +
			"--tree shows each run below the one that started it, and in the line of a run the sums of those below it, too.",
		flags: []cli.Flag{
			&cli.BoolFlag{Name: flagOnce, Usage: "show it once and end", DisableDefaultText: true},
			&cli.StringFlag{Name: flagInterval, Usage: "time between two samples", Value: "1s"},
			boolean("", flagTree, "", "each run below the one that started it, with sums"),
			jsonFlag("write one JSON object for each sample, with a list of runs"),
		},
	}
}

// usage is the row of one run.
type usage struct {
	Run   string      `json:"run"`
	ID    agent.ID    `json:"id"`
	Stats agent.Stats `json:"stats"`

	parent agent.ID
	run    agent.Run
}

func showStats(p program, c *cli.Context) error {
	return sample(p, c, func(_ *client.Client, rows []usage, before map[agent.ID]agent.Stats) error {
		return printUsage(p.screen, c, rows, before)
	})
}

// sample queries again and again, and shows each sample beside the one before. The interval has a floor of
// 100 ms, because each query costs every supervisor some work.
func sample(p program, c *cli.Context, show func(d *client.Client, rows []usage, before map[agent.ID]agent.Stats) error) error {
	interval, err := settings.ParseClock(flagInterval, c.String(flagInterval))
	if err != nil {
		return err
	}
	d, err := p.cloved(c)
	if err != nil {
		return err
	}
	defer d.Close()
	// By id: a name may be given to another run in between.
	before := map[agent.ID]agent.Stats{}
	ticker := time.NewTicker(max(interval, 100*time.Millisecond))
	defer ticker.Stop()
	for {
		rows, err := look(c, d)
		if err != nil {
			return err
		}
		if err := show(d, rows, before); err != nil {
			return err
		}
		for _, row := range rows {
			before[row.ID] = row.Stats
		}
		if c.Bool(flagOnce) {
			return nil
		}
		select {
		case <-ticker.C:
		case <-c.Context.Done():
			return nil
		}
	}
}

// look queries all runs at once. A run that has ended in the meantime is left out,
// unless it was named.
func look(c *cli.Context, d *client.Client) ([]usage, error) {
	var asked []usage
	for _, reference := range c.Args().Slice() {
		asked = append(asked, usage{Run: reference})
	}
	if len(asked) == 0 {
		for listed, err := range client.All(c.Context, d, methods.RunList, api.ListParams{Brief: true}) {
			if err != nil {
				return nil, err
			}
			// cloved has no connection to a run in root's foreground.
			if run := listed.Run; run.State == agent.StateRunning && run.Spec.Detached {
				asked = append(asked, usage{Run: string(run.Spec.ID), ID: run.Spec.ID})
			}
		}
	}
	failures := make([]error, len(asked))
	names := make([]string, len(asked))
	var all sync.WaitGroup
	for i := range asked {
		all.Go(func() { names[i], failures[i] = asked[i].fill(c, d) })
	}
	all.Wait()
	var found []usage
	for i, row := range asked {
		if err := failures[i]; err != nil && (c.NArg() > 0 || !isGone(err)) {
			return nil, err
		}
		if row.Run = names[i]; failures[i] == nil {
			found = append(found, row)
		}
	}
	return found, nil
}

// isGone reports whether a run ended, or with --rm was removed, between two queries.
func isGone(err error) bool {
	return agent.KindOf(err) == agent.KindConflict || agent.KindOf(err) == agent.KindNotFound
}

// fill also asks for the name, because the reference may be a part of the id.
func (u *usage) fill(c *cli.Context, d *client.Client) (name string, err error) {
	found, err := client.Do(c.Context, d, methods.RunGet, api.RunParams{Run: u.Run})
	if err != nil {
		return "", err
	}
	u.ID, u.parent, u.run = found.Run.Spec.ID, found.Run.Parent, found.Run
	used, err := client.Do(c.Context, d, methods.RunStats, api.RunParams{Run: u.Run})
	u.Stats = used.Stats
	return shown(found.Run.Name()), err
}

// printUsage draws the table over the last one on a terminal. A file or a pipe gets one
// table after the other.
func printUsage(s *screen, c *cli.Context, rows []usage, before map[agent.ID]agent.Stats) error {
	if c.Bool(flagJSON) {
		return writeLine(s.out, map[string]any{"runs": append([]usage{}, rows...)})
	}
	redraw(s, c)
	table := [][]string{{"ID", "NAME", "CPU", "MEMORY", "LIMIT", "PIDS", "NET IN", "NET OUT", "DISK", "RAN"}}
	shares := cpuShares(rows, before)
	places := make([]branch, len(rows))
	for i := range rows {
		places[i].at = i
	}
	if c.Bool(flagTree) {
		places = treeOf(len(rows), func(i int) agent.ID { return rows[i].ID }, func(i int) agent.ID { return rows[i].parent })
		rows = sums(rows, shares, places)
	}
	for _, b := range places {
		row := rows[b.at]
		s := row.Stats
		table = append(table, []string{string(row.ID)[:shortID], b.indented(row.Run), shareText(shares[b.at]), figure(s.MemoryBytes, size), size(s.Limits.MemoryBytes),
			figure(s.Pids, plain), figure(s.Usage.NetRxBytes, size), figure(s.Usage.NetTxBytes, size), figure(s.Usage.DiskBytes, size),
			(time.Duration(s.WallMS) * time.Millisecond).Round(time.Second).String()})
	}
	return printTable(s.out, table)
}

// redraw clears a terminal for the next sample.
func redraw(s *screen, c *cli.Context) {
	if !c.Bool(flagOnce) && isTerminal(s.out) {
		fmt.Fprint(s.out, "\x1b[H\x1b[2J") // home, and clear: ECMA-48
	}
}

// sums adds to each row of a tree the figures of those below it.
func sums(rows []usage, shares []*float64, places []branch) []usage {
	rows = slices.Clone(rows)
	at := map[agent.ID]int{}
	for i, row := range rows {
		at[row.ID] = i
	}
	for _, b := range slices.Backward(places) { // what is below comes first
		i, found := at[rows[b.at].parent]
		if !found || b.depth == 0 {
			continue
		}
		to, from := &rows[i].Stats, rows[b.at].Stats
		plus(&to.MemoryBytes, from.MemoryBytes)
		plus(&to.Pids, from.Pids)
		plus(&to.Usage.NetRxBytes, from.Usage.NetRxBytes)
		plus(&to.Usage.NetTxBytes, from.Usage.NetTxBytes)
		plus(&to.Usage.DiskBytes, from.Usage.DiskBytes)
		plus(&shares[i], shares[b.at])
	}
	return rows
}

// plus adds a figure to a sum. The sum of figures of which one is not known is not known either.
func plus[N int64 | float64](sum **N, one *N) {
	if *sum == nil || one == nil {
		*sum = nil
		return
	}
	*sum = new(**sum + *one)
}

// cpuShares has cpuShare of each row.
func cpuShares(rows []usage, before map[agent.ID]agent.Stats) []*float64 {
	shares := make([]*float64, len(rows))
	for i, row := range rows {
		shares[i] = cpuShare(before[row.ID], row.Stats)
	}
	return shares
}

// shareText is a share of the CPU; a dash where the host does not report it.
func shareText(share *float64) string {
	if share == nil {
		return "-"
	}
	return strconv.FormatFloat(*share, 'f', 1, 64) + "%"
}

// cpuShare is in percent of one CPU since the last query. The first query shows the
// average of the run's whole life. nil: this host does not report it.
func cpuShare(before, now agent.Stats) *float64 {
	if now.Usage.CPUMS == nil {
		return nil
	}
	used, wall := *now.Usage.CPUMS, now.WallMS
	if before.Usage.CPUMS != nil && now.WallMS > before.WallMS {
		used, wall = used-*before.Usage.CPUMS, wall-before.WallMS
	}
	return new(100 * float64(used) / float64(max(wall, 1)))
}

// figure shows a dash for what this host's cgroups do not report.
func figure(n *int64, unit func(int64) string) string {
	if n == nil {
		return "-"
	}
	return unit(*n)
}

// plain is a figure without a unit.
func plain(n int64) string { return strconv.FormatInt(n, 10) }
