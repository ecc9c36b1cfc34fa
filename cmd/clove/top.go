package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/policies"
)

func topCommand() command {
	return command{
		task: "look", runs: completeLive, usage: "show live families of agents, or the processes of a run",
		verbs: []verb{{line: "clove top [--once] [--interval DUR] [--json] [NAME|ID]",
			act: topOf{ask(methods.RunProcesses).columns("PID", "PPID", "UID", "S", "THREADS", "CPU", "MEMORY", "STARTED", "COMMAND")}}},
		description: "Without a name: all live runs that cloved started, each below the one whose agent started it. Behind the last run of a\n" +
			"tree, or of a team, is a line with their sums, if there are several. MEMORY is what is used, of the limit: that of a tree\n" +
			"is its first run's. BUDGETS are the limits of a run's own account, with what is used and reserved of each; in the line of\n" +
			"a tree those of its first run, from which all below it spend, and in that of a team those of its namespace. On a terminal\n" +
			"the table is redrawn until ctrl-c; clove stats has the network, the disk, and the time.\n" +
			"With a name: the processes of that run, once, with the ids that they have inside. Long cells are cut to the terminal's\n" +
			"width, or 80 columns; --json has them whole.",
		flags: []cli.Flag{
			&cli.BoolFlag{Name: flagOnce, Usage: "show it once and end", DisableDefaultText: true},
			&cli.StringFlag{Name: flagInterval, Usage: "time between two samples", Value: "1s"},
			jsonFlag("write the processes as a JSON array, or one JSON object for each sample"),
		},
	}
}

// topOf shows the processes of a run that is named, and else families.
type topOf struct{ processes action }

func (t topOf) run(p program, l *line) error {
	if len(l.args) > 0 {
		if l.IsSet(flagInterval) {
			return invalid(flagInterval, "omit it, or the name", "processes are listed once")
		}
		return t.processes.run(p, l)
	}
	return sample(p, l.Context, func(d *client.Client, rows []usage, before map[agent.ID]agent.Stats) error {
		lines, err := client.Collect(client.All(l.Context.Context, d, methods.BudgetList, api.BudgetListParams{}))
		if err != nil {
			return err
		}
		return printFamilies(p.screen, l.Context, familiesOf(rows, lines, cpuShares(rows, before)))
	})
}

// member is a run of a family.
type member struct {
	usage
	Parent  agent.ID     `json:"parent,omitempty"`
	Budgets []api.Budget `json:"budgets"` // its own account's

	cpu   *float64
	depth int
}

// family is a team, or a run with those below it.
type family struct {
	Name    string       `json:"name"`
	Team    bool         `json:"team,omitempty"`
	Runs    []member     `json:"runs"`    // each behind its parent
	Sum     agent.Stats  `json:"sum"`     // memory, processes, network and disk of all; the limits are those that hold for the sum
	Budgets []api.Budget `json:"budgets"` // what all spend from: the first run's account, or the team's

	cpu *float64
}

// firstOf is the run at the top of a run's tree, which may have ended.
func firstOf(run agent.Run) agent.Ancestor { return run.Under()[len(run.Above)] }

// familiesOf puts live runs into families, and adds up what each uses.
func familiesOf(rows []usage, lines []api.Budget, shares []*float64) []family {
	teams := map[agent.ID]string{}
	for _, row := range rows {
		if row.run.Parent == "" {
			teams[row.ID] = row.run.Spec.Labels[policies.LabelTeam]
		}
	}
	// Each family has a row of its own above those of its runs, which gets their sums.
	var all []family
	heads, of := []usage{}, map[agent.ID]int{}
	members := slices.Clone(rows)
	listed := func(id agent.ID) bool { return slices.ContainsFunc(rows, func(row usage) bool { return row.ID == id }) }
	for i, row := range rows {
		first, uid := firstOf(row.run), row.run.Owner.UID
		head, f := first.ID+"/family", family{Name: shown(agent.RunName{UID: uid, Name: first.Name}), Budgets: limited(lines, budget.RunKey(uid, first.ID))}
		if team := teams[first.ID]; team != "" {
			head = agent.ID(fmt.Sprint(uid, "/", first.Namespace, "/", team))
			f = family{Name: shown(agent.RunName{UID: uid, Name: team}), Team: true, Budgets: limited(lines, budget.NamespaceKey(uid, first.Namespace))}
		}
		if _, known := of[head]; !known {
			of[head] = len(all)
			all, heads = append(all, f), append(heads, usage{ID: head, Stats: agent.Stats{Time: row.Stats.Time, MemoryBytes: new(int64), Pids: new(int64),
				Usage: agent.Usage{NetRxBytes: new(int64), NetTxBytes: new(int64), DiskBytes: new(int64)}}})
			shares = append(shares, new(float64))
		}
		if !listed(row.parent) {
			members[i].parent = head
		}
	}
	tree := append(members, heads...)
	places := treeOf(len(tree), func(i int) agent.ID { return tree[i].ID }, func(i int) agent.ID { return tree[i].parent })
	own := slices.Clone(shares)
	added := sums(tree, shares, places)
	at := 0
	for _, b := range places {
		if b.at >= len(rows) {
			at = of[tree[b.at].ID]
			all[at].Sum, all[at].cpu = added[b.at].Stats, shares[b.at]
			continue
		}
		row := rows[b.at]
		if f := &all[at]; !f.Team && firstOf(row.run).ID == row.ID {
			f.Sum.Limits = row.Stats.Limits
		}
		all[at].Runs = append(all[at].Runs, member{usage: row, Parent: row.parent, Budgets: limited(lines, budget.RunKey(row.run.Owner.UID, row.ID)), cpu: own[b.at], depth: b.depth - 1})
	}
	return all
}

// limited are the limits of an account.
func limited(lines []api.Budget, account budget.Key) []api.Budget {
	all := []api.Budget{}
	for _, line := range lines {
		if line.Account == string(account) && line.Granted != nil {
			all = append(all, line)
		}
	}
	return all
}

// printFamilies prints each family with a line of its sums, if it has several runs.
func printFamilies(s *screen, c *cli.Context, all []family) error {
	if c.Bool(flagJSON) {
		return writeLine(s.out, map[string]any{"families": append([]family{}, all...)})
	}
	redraw(s, c)
	if len(all) == 0 {
		s.none("no agent runs that cloved has started")
	}
	table := [][]string{{"ID", "NAME", "CPU", "MEMORY", "PIDS", "BUDGETS"}}
	row := func(id, name string, cpu *float64, s agent.Stats, budgets []api.Budget) {
		memory := figure(s.MemoryBytes, size)
		if s.Limits.MemoryBytes > 0 {
			memory += "/" + size(s.Limits.MemoryBytes)
		}
		table = append(table, []string{id, name, shareText(cpu), memory, figure(s.Pids, plain), budgetsText(budgets)})
	}
	for _, f := range all {
		for _, m := range f.Runs {
			row(string(m.ID)[:shortID], branch{depth: m.depth}.indented(m.Run), m.cpu, m.Stats, m.Budgets)
		}
		if len(f.Runs) > 1 {
			name := f.Name + ": " + strconv.Itoa(len(f.Runs)) + " runs"
			if f.Team {
				name = "team " + name
			}
			row("", name, f.cpu, f.Sum, f.Budgets)
		}
	}
	return s.printFitting(table, len(table[0])-1, nameColumn)
}

// budgetsText is what is used and reserved of each limit, such as "cost 0.1usd/0.5usd, children 2/16".
func budgetsText(lines []api.Budget) string {
	texts := make([]string, len(lines))
	for i, l := range lines {
		d := budget.Dimension(l.Dimension)
		texts[i] = d.Title() + " " + d.Show(l.Used+l.Reserved) + "/" + d.Show(*l.Granted)
	}
	return strings.Join(texts, ", ")
}
