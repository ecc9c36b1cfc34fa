package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

func kernelCommand() command {
	return command{
		task: "administer", usage: "show on one page what cloved has: numbers, the queue, names",
		verbs: []verb{
			{line: "clove kernel summary [--json]", act: ask(methods.Summary).shows(showSummary)},
			{line: "clove kernel queue [--json]", act: by(showQueue)},
			{line: "clove kernel registry [--owner UID] [--namespace NAMESPACE] [--prefix TEXT] [--tag TAG] [--json]",
				act: list(methods.NameQuery).columns("NAME", "NAMESPACE", "RUNS", "RESERVED", "TAGS")},
		},
		description: "summary counts runs by state, events, mail, queues and jobs, names, grants and budgets; queue has the runs that wait, each with its reason;\n" +
			"registry the names of agents, and topic/T with the subscribers of the topic T (clove name changes them). Root sees\n" +
			"everybody's, a user their own.",
		flags: []cli.Flag{
			&cli.StringFlag{Name: flagOwner, Usage: "registry: the names of this user ID; for root"},
			&cli.StringFlag{Name: flagNamespace, Usage: "registry: the names of this namespace"},
			&cli.StringFlag{Name: flagPrefix, Usage: "registry: names that begin with this"},
			&cli.StringFlag{Name: flagTag, Usage: "registry: names that have this tag, or a run with it"},
			jsonFlag("write an object, or of lists a JSON array"),
		},
	}
}

func showSummary(s *screen, l *line, n api.SummaryResult) error {
	if l.Bool(flagJSON) {
		return s.printJSON(n)
	}
	rows := [][]string{{"cloved", fmt.Sprintf("%s, API %d, up %s", n.Version, n.API, time.Since(n.Started).Round(time.Second))}}
	if n.Draining {
		rows = append(rows, []string{"", "starts nothing: it is drained"})
	}
	for _, state := range agent.States {
		rows = append(rows, []string{"runs " + string(state), fmt.Sprint(n.Runs[state])})
	}
	for _, row := range []struct {
		what string
		n    any
	}{{"newest event", n.Events}, {"mailboxes", n.Mailboxes}, {"messages", n.Messages}, {"dead letters", n.DeadLetters}, {"queues", n.Queues}, {"names", n.Names}, {"blobs", n.Blobs}, {"bytes of blobs", n.BlobBytes}, {"grants", n.Grants}, {"budgets", n.Budgets}, {"budgets spent", n.Spent}, {"questions that wait", n.Approvals}} {
		rows = append(rows, []string{row.what, fmt.Sprint(row.n)})
		if row.what == "queues" {
			for _, state := range api.JobStates {
				rows = append(rows, []string{"jobs " + state, fmt.Sprint(n.Jobs.ByState()[state])})
			}
		}
	}
	return printTable(s.out, rows)
}

// waiting is a run that waits, and why.
type waiting struct {
	Run      string    `json:"run" col:"RUN"`
	ID       agent.ID  `json:"id"`
	Owner    uint32    `json:"owner" col:"OWNER"`
	Since    time.Time `json:"since" col:"WAITS,age"`
	Priority int       `json:"priority" col:"PRIORITY"`
	Reason   string    `json:"reason" col:"REASON,,cut"`
}

// showQueue shows the runs that wait, the one that has waited longest first.
func showQueue(p program, c *cli.Context) error {
	runs, err := p.list(c, false)
	if err != nil {
		return err
	}
	queue := []waiting{}
	for _, one := range runs {
		if run := one.Run; run.State == agent.StateQueued {
			queue = append(queue, waiting{shown(run.Name()), run.Spec.ID, run.Owner.UID, run.Queue.Since, run.Spec.Priority, cmp.Or(one.Reason, "a start")})
		}
	}
	slices.SortStableFunc(queue, func(a, b waiting) int { return a.Since.Compare(b.Since) })
	return p.printList(c, queue)
}
