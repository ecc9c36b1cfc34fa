package main

import (
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/kernel/budget"
)

// Flags of clove budget that no other command has.
const (
	flagFrom = "from"
	flagTo   = "to"
	flagCSV  = "csv"
)

func budgetCommand() command {
	return command{
		task: "decide", runs: completeAll, usage: "show and change what an agent may spend",
		verbs: []verb{
			{line: "clove budget show [--json] AGENT", act: onCloved(budgetShow)},
			{line: "clove budget raise [--json] AGENT DIMENSION=AMOUNT...",
				act: ask(methods.BudgetRaise).shows(says(func(l *line, _ api.BudgetResult) string { return l.args[0] }))},
			{line: "clove budget reset [--json] AGENT|ACCOUNT DIMENSION...", act: onCloved(budgetReset)},
			{line: "clove budget set [--at-end WHAT] [--json] ACCOUNT BUDGET...", act: ask(methods.BudgetSet).columns(budgetColumns...)},
			{line: "clove budget list [--json] [ACCOUNT]", act: list(methods.BudgetList).columns(budgetColumns...)},
			{line: "clove budget report [--from DAY] [--to DAY] [--csv|--json]", act: list(methods.BudgetReport).fills(oneForm)},
			{line: "clove budget top [--json] [DIMENSION]",
				act: ask(methods.BudgetTop).columns("DIMENSION", "LAST MINUTE", "AGENT", "OWNER", "NAMESPACE", "USED", "LIMIT")},
		},
		description: "AGENT is the name or id of a run. show lists every line that it spends from: its own, and those of its name, its\n" +
			"namespace and its owner; of a run that an agent started also those of the runs above it, as a tree. raise adds an amount to the run's own limit, such as tokens=20k, cost=0.50usd, cpu_ms=90s or\n" +
			"write_bytes=1G: a run that was paused for it continues. reset sets what was used back to zero, of a run or of an\n" +
			"ACCOUNT. Only the user who set a limit may raise or reset it, and root. Amounts are shown in the unit that is typed.\n" +
			"set limits what several runs spend together: ACCOUNT is name:NAME, ns:NAMESPACE or a user's number, for root also\n" +
			"UID/name:NAME and UID/ns:NAMESPACE, for reset also UID/provider:NAME. A BUDGET is that of clove run --budget. list shows an account and all below it;\n" +
			"without one, all that you may see.\n" +
			"report sums up what was spent by day (UTC), owner and dimension, top shows which runs spent most of each dimension in\n" +
			"the last minute; root sees everybody's, others their own.",
		flags: []cli.Flag{
			&cli.StringFlag{Name: flagFrom, Usage: "report: the first day (UTC), such as 2026-11-23"},
			&cli.StringFlag{Name: flagTo, Usage: "report: the last day"},
			&cli.BoolFlag{Name: flagCSV, Usage: "report: write comma-separated values"},
			value("", flagAtEnd, "", "set: what happens to a run when nothing is left: end, pause or refuse", "end"),
			jsonFlag("write the lines as a JSON array"),
		},
	}
}

// budgetColumns is the order in which tables show budgets.
var budgetColumns = []string{"ACCOUNT", "DIMENSION", "USED", "RESERVED", "LIMIT", "PEAK", "WARN AT", "AT END", "PERIOD", "STATE"}

// budgetShow shows the accounts of runs above this one as a tree. Only that needs the run.
func budgetShow(s *screen, c *cli.Context, d *client.Client) error {
	of := api.RunParams{Run: c.Args().Get(1)}
	has, err := client.Do(c.Context, d, agents.BudgetGet, of)
	switch {
	case err != nil:
		return err
	case c.Bool(flagJSON):
		return s.printJSON(append([]api.Budget{}, has.Budgets...))
	}
	accounts := map[string]bool{}
	for _, line := range has.Budgets {
		if _, is := budget.Key(line.Account).Run(); is {
			accounts[line.Account] = true
		}
	}
	var found api.RunResult
	if len(accounts) > 1 {
		if found, err = client.Do(c.Context, d, methods.RunGet, of); err != nil {
			return err
		}
	}
	return s.printFitting(budgetTree(found.Run, has.Budgets))
}

// oneForm refuses two forms of the report.
func oneForm(l *line, _ *api.BudgetReportParams) error {
	if l.Bool(flagCSV) && l.Bool(flagJSON) {
		return invalid(flagCSV, "choose one of --csv and --json", "the report has one form")
	}
	return nil
}

// accountKey is an account's whole name: the caller's own may be written without its
// number.
func accountKey(text string) string {
	if strings.HasPrefix(text, "name:") || strings.HasPrefix(text, "ns:") {
		return string(budget.OwnerKey(uint32(os.Geteuid()))) + "/" + text
	}
	return text
}

// readAmounts reads DIMENSION=AMOUNT, each dimension once.
func readAmounts(texts []string) (any, error) {
	amounts := map[string]int64{}
	for _, text := range texts {
		dimension, n, err := parseRaise(text)
		if err != nil {
			return nil, err
		}
		if _, twice := amounts[string(dimension)]; twice {
			return nil, invalid("", "name each dimension once", "%s stands there twice", dimension)
		}
		amounts[string(dimension)] = n
	}
	return amounts, nil
}

// parseRaise reads DIMENSION=AMOUNT.
func parseRaise(text string) (d budget.Dimension, amount int64, err error) {
	if strings.ContainsAny(text, "/,") {
		return "", 0, invalid("", "write the amount alone, for example tokens=20k", "%.128q: the period and the warning of a limit stay as they are", text)
	}
	return budget.ParseNamed(text)
}

// budgetReset takes an account where the text is one: a run whose name is a number is named by its
// id, or as UID/NAME.
func budgetReset(s *screen, c *cli.Context, d *client.Client) error {
	run := c.Args().Get(1)
	var dimensions []string
	for _, text := range c.Args().Slice()[2:] {
		dimension, err := budget.ParseDimension(text)
		if err != nil {
			return err
		}
		dimensions = append(dimensions, string(dimension))
	}
	answer, err := resetBudget(c, d, run, dimensions)
	if err != nil {
		return err
	}
	return s.answer(c, answer, run)
}

func resetBudget(c *cli.Context, d *client.Client, run string, dimensions []string) (api.BudgetResult, error) {
	key := budget.Key(accountKey(run))
	if id, ofRun := key.Run(); ofRun {
		run = string(id)
	} else if _, account := key.Owner(); account {
		return client.Do(c.Context, d, methods.BudgetSet, api.BudgetSetParams{Account: string(key), Reset: dimensions})
	}
	return client.Do(c.Context, d, methods.BudgetReset, api.BudgetResetParams{RunParams: api.RunParams{Run: run}, Dimensions: dimensions})
}
