package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/cmd/clove/verbs"
	"clove.run/clove/kernel/budget"
)

func showCommand() command {
	return command{
		task: "look", runs: completeAll, usage: "show an agent on one page: its run, grants, budgets and refusals",
		verbs: []verb{{line: "clove show [--json] NAME|ID", act: by(showAgent)}},
		description: "What the run is, how it ended and who stopped it, its limits, policy, restarts and last lines of log, runs that its agent started, what it may do,\n" +
			"what it has spent, how many of its calls were refused, what happened last, and the next step.\n" +
			"clove inspect has all of the run, clove audit query the single decisions.",
		flags: []cli.Flag{jsonFlag("write one JSON object")},
	}
}

// page is all that clove show writes.
type page struct {
	Run      agent.Run        `json:"run"`
	Waits    string           `json:"waits,omitempty"` // for what: its start, or people
	Facts    []fact           `json:"facts"`           // how it ended, its terms, its log and the next step
	Grants   []api.Grant      `json:"grants"`
	Budgets  []api.Budget     `json:"budgets"`
	Children []api.Child      `json:"children"` // all runs below it, each behind its parent
	Refused  int64            `json:"refused"`  // calls of the agent
	Events   []agent.RunEvent `json:"events"`   // the last ones about its grants, budgets, refusals and models
}

// pageEvents are the events of a page, and how many it has.
var pageEvents = []agent.RunEventKind{agent.RunGrantGiven, agent.RunGrantRevoked, agent.RunBudgetWarned, agent.RunBudgetEnded, agent.RunBudgetPaused, agent.RunRefused, agent.RunModelCalled, agent.RunToolCalled, agent.RunSpawned, agent.RunAsked, agent.RunAnswered}

const pageEventsMost = 10

func showAgent(p program, c *cli.Context) error {
	d, err := p.cloved(c)
	if err != nil {
		return err
	}
	defer d.Close()
	of, err := readPage(c, d)
	if err != nil {
		return err
	}
	of.Facts = story(of.Run, p.lastLines(c, of.Run))
	if c.Bool(flagJSON) {
		return p.printJSON(of)
	}
	return printPage(p.screen, of)
}

// readPage asks by the run's id after the first answer: its name may change meanwhile.
func readPage(c *cli.Context, d *client.Client) (page, error) {
	found, err := client.Do(c.Context, d, methods.RunGet, api.RunParams{Run: c.Args().First()})
	if err != nil {
		return page{}, err
	}
	id := string(found.Run.Spec.ID)
	shared, err := client.Do(c.Context, d, agents.AgentGet, api.RunParams{Run: id})
	if err != nil {
		return page{}, err
	}
	grants, err := client.Collect(client.All(c.Context, d, agents.GrantList, api.GrantListParams{RunParams: api.RunParams{Run: id}}))
	if err != nil {
		return page{}, err
	}
	children, err := client.Collect(client.All(c.Context, d, agents.AgentTree, api.ChildListParams{RunParams: api.RunParams{Run: id}}))
	if err != nil {
		return page{}, err
	}
	of := page{Run: found.Run, Waits: found.Reason, Children: append([]api.Child{}, children...), Grants: append([]api.Grant{}, grants...), Budgets: append([]api.Budget{}, shared.Budgets...), Refused: shared.Refused, Events: []agent.RunEvent{}}
	_, err = client.Each(c.Context, d, methods.EventFollow, api.EventParams{After: new(uint64), Run: id, What: pageEvents}, func(n api.EventNote) error {
		if n.Event != nil {
			of.Events = append(of.Events[max(0, len(of.Events)-pageEventsMost+1):], *n.Event)
		}
		return nil
	})
	return of, err
}

func printPage(s *screen, of page) error {
	now := time.Now()
	if err := printTable(s.out, runFacts(of, now)); err != nil {
		return err
	}
	grants, _ := verbs.Rows(of.Grants, forms(), grantColumns)
	budgets := budgetTree(of.Run, of.Budgets)
	events, _ := verbs.Rows(of.Events, forms(), nil)
	type part struct {
		title string
		rows  [][]string
	}
	parts := []part{{"GRANTS", grants}, {"BUDGETS", budgets}, {"EVENTS", events}}
	if len(of.Children) > 0 {
		parts = slices.Insert(parts, 0, part{"CHILDREN", childTree(of.Children)})
	}
	for _, part := range parts {
		if len(part.rows) == 1 { // its heading
			part.rows = [][]string{{"none"}}
		}
		if _, err := fmt.Fprintln(s.out, "\n"+part.title); err != nil {
			return err
		}
		if err := printTable(s.out, part.rows); err != nil {
			return err
		}
	}
	return nil
}

// childrenText is how many children a run has of those that it may have at once; empty: it may have none.
func childrenText(lines []api.Budget, run agent.Run) string {
	own := budget.RunKey(run.Owner.UID, run.Spec.ID)
	for _, l := range lines {
		if l.Account == string(own) && l.Dimension == string(budget.Children) && l.Granted != nil {
			return fmt.Sprintf("%d of %d", l.Reserved, *l.Granted)
		}
	}
	return ""
}

// runFacts are the lines about the run itself. Those without a value are left out.
func runFacts(of page, now time.Time) [][]string {
	run := of.Run
	var rows [][]string
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{name, value})
		}
	}
	add("name", shown(run.Name()))
	add("id", string(run.Spec.ID))
	add("state", stateName(run))
	add("waits", of.Waits)
	if run.Record != nil {
		add("end", howEnded(run))
		add("asked", askedText(run.Record.Asked))
	}
	add("owner", "uid "+strconv.FormatUint(uint64(run.Owner.UID), 10))
	add("namespace", run.Spec.Kernel.Namespace)
	add("command", strings.Join(run.Spec.Command, " "))
	add("reads secrets", strings.Join(run.Spec.Kernel.ReadableSecrets(), ", "))
	if run.Parent != "" {
		add("parent", run.ParentName()+" ("+string(run.Parent)+")")
	}
	if !run.Deadline.IsZero() {
		add("deadline", run.Deadline.Local().Format(time.RFC3339)+", its parent's")
	}
	add("children", childrenText(of.Budgets, run))
	add("created", age(now.Sub(run.Created)))
	if !run.Started.IsZero() {
		add("started", age(now.Sub(run.Started)))
	}
	add("refused", strconv.FormatInt(of.Refused, 10)+" calls")
	for _, f := range of.Facts {
		add(f.Name, f.Value)
	}
	return rows
}
